--- stdlib/strategies/sharded/part_meta.lua: gives the parameters of a module on the meta device
--- their values, and each rank its shards of them: no rank has more than one parameter whole at a
--- time.
local Shards = require "ltrain.strategies.sharded.Shards"
local c = require "ltrain.c"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

-- A parameter in place of one of the meta device, with the values that all ranks have.
local function made(item, device, share)
  local old = item.value
  local values, why = c.runtime.materialize(old:detach(), device)
  if not values then errors.blame("materialize: %s: %s", item.name, why) end
  local parameter = c.parameter(values, { requires_grad = old.requires_grad })
  cuts.note(parameter, cuts.of(old))
  share(parameter)
  return parameter
end

--- Adds them to `shards`, and returns that; nil when no parameter is on the meta device. Parameters
--- with fewer elements than `keep_below` stay whole. share(parameter) makes the values of one the
--- same on all ranks that have it. All ranks call it.
return function(module, device, keep_below, shards, share)
  local done = {}
  for _, entry in ipairs(walk.modules(module)) do
    for _, item in ipairs(entry.tensors) do
      local old = item.value
      if not item.buffer and old.is_meta then
        local parameter = done[old] or made(item, device, share)
        rawset(item.holder, item.key, parameter)
        if not done[old] then
          local shard = shards:add(parameter, item.name)
          if parameter:numel() >= keep_below and shard.replicas.ranks > 1 then
            Shards.part(shard)
          end
        end
        done[old] = parameter
      end
    end
  end
  return next(done) and shards or nil
end
