--- stdlib/dist/batch.lua: lt.dist.batch: several collectives at once, all of them begun before any
--- is waited for.
--
--   local lt = require "ltrain"
--   lt.dist.launch(3, function(rank)
--     local right, left = (rank + 1) % 3, (rank + 2) % 3
--     local got = lt.dist.batch{{"send", rank, right}, {"recv", left}, {"all_reduce", 2}}
--     if rank == 0 then print(got[2], got[3]) end
--   end)
--   -- prints: 2	6
--
-- A call that waits before the next one begins could wait for a rank that waits for this one: all
-- ranks of a ring that send first. In a batch the order of messages to and from different ranks
-- does not matter (PyTorch's batch_isend_irecv).
local Group = require "ltrain.dist.Group"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local options_of = require "ltrain.dist.options"
local strict_arity = require "ltrain.core.strict_arity"

-- The handle of all.
local Batch = class.extend(nil, "Batch")

function Batch:init(handles)
  self._handles = handles
end

function Batch:wait()
  local results = {}
  for k, handle in ipairs(self._handles) do results[k] = handle:wait() end
  return results
end

function Batch:test()
  for _, handle in ipairs(self._handles) do
    if not handle:test() then return false end
  end
  return true
end

local function names()
  local list = {}
  for name in next, collectives.places do list[#list + 1] = name end
  table.sort(list)
  return list
end

-- Begins the k-th call, {name, arguments..., options}; returns its handle.
local function begin(call, k, group)
  local name = type(call) == "table" and call[1] or call
  local places = collectives.places[name]
  if not places or type(call) ~= "table" then
    errors.blame("batch: calls[%d] must be a list of a collective's name and its arguments: "
      .. "got %s%s", k, errors.show(name), errors.did_you_mean(name, names()))
  end
  local args = table.move(call, 2, places + 3, 1, {})
  local options = args[places + 1]
  if type(options or {}) == "table" then
    options = Group._with(options, group)
    options.async = true
  end
  args[places + 1] = options
  return (collectives[name](table.unpack(args, 1, places + 2)))
end

--- Begins several collectives, each {name, arguments..., options}, then waits for all of them:
--- `batch{{"send", x, 1}, {"recv", 2}, {"all_reduce", y, {op = "max"}}}`. Returns the list of their
--- results, of those that have none nil; with `async = true` a handle whose wait() does.
function collectives.batch(calls, options)
  config.argument(calls, "table", "batch", "calls")
  local o = config.check(options, options_of.batch, "batch")
  local handles = {}
  for k = 1, #calls do handles[k] = begin(calls[k], k, o.group) end
  local all = Batch(handles)
  return o.async and all or all:wait()
end

return strict_arity.fn(collectives.batch, "batch")
