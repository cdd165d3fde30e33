-- spec/dist/over.lua: a case that is the same whatever started the ranks. An everyday run has each
-- case over one of the ways, the next case over the next (spec/sample.lua).
local busted = require "busted"
local job = require "spec.dist.job"
local sample = require "spec.sample"

local ON_DEVICE <const> = os.getenv "LT_TEST_DEVICE" ~= nil -- one way: spec/devices.lua, transports

local turn = 0

-- The ways of `ways` that are there; where there is none, all.
local function possible(ways)
  local list = {}
  for _, way in ipairs(ways) do
    if job.can(way) then list[#list + 1] = way end
  end
  return #list > 0 and list or ways
end

-- One of the ways, each in its turn; on a device all: the runner leaves out those that are not
-- for it.
local function one_of(ways)
  if ON_DEVICE then return ways end
  local list, rotated = possible(ways), {}
  for k = 1, #list do rotated[k] = list[(k + turn) % #list + 1] end
  turn = turn + 1
  return sample(rotated, #rotated)
end

--- For each of the ways ("shm", "mpi", "two hosts") a case `NAME over WAY` that is fn(way), or the
--- reason why there can be none here.
return function(ways, name, fn)
  for _, way in ipairs(one_of(ways)) do
    local can, why = job.can(way)
    local sentence = ("%s over %s"):format(name, way)
    if can then
      busted.it(sentence, function() fn(way) end)
    else
      busted.pending(("%s (%s)"):format(sentence, why))
    end
  end
end
