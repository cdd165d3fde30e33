-- stdlib/init.lua: `require "ltrain"`: tensors and their functions, and the rooms of the library.
--
-- What C gives is there at once; what is written in Lua is loaded when first asked for, so that a
-- script pays only for what it uses.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local exact = require "ltrain.core.exact"
local places = require "ltrain.core.places"

local lt = {}
for name, value in next, c do
  if not places[name] then lt[name] = value end
end

--- The seed of all random numbers that follow; Lightning's name for lt.seed.
lt.seed_everything = c.seed

-- LT_SEED of the environment, until lt.seed or --seed says another.
local function seed_of_environment()
  local text = c.runtime.getenv "LT_SEED"
  if not text then return end
  local seed = math.tointeger(tonumber(text))
  if not seed or seed < 0 then
    errors.blame("LT_SEED = %s: must be an integer of at least 0", errors.show(text))
  end
  c.seed(seed)
end
seed_of_environment()

local function find(self, name)
  local place = places[name]
  if place then
    local path, field = place:match "^([^:]+):?(.*)$"
    local value = require(path)
    value = exact.fn(field == "" and value or value[field], name)
    rawset(self, name, value)
    return value
  end
  local names = {}
  for known in next, places do names[#names + 1] = known end
  for known in next, self do names[#names + 1] = known end
  table.sort(names)
  errors.blame("ltrain: there is no lt.%s%s", tostring(name), errors.did_you_mean(name, names))
end

return setmetatable(lt, { __index = find })
