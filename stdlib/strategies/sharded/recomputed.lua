--- stdlib/strategies/sharded/recomputed.lua: modules whose activations backward computes again
--- (activation checkpointing).
local checkpoint = require "ltrain.nn.checkpoint"
local units = require "ltrain.strategies.sharded.units"
local walk = require "ltrain.core.walk"

--- From here on the modules in `root` that are `wanted`, a list of classes or fn(module, name),
--- keep of their forward only what they are called with. Returns fn(), which ends that.
return function(root, wanted)
  local changed = {}
  for _, entry in ipairs(walk.modules(root)) do
    local module = entry.module
    if units.is_meant(entry, wanted) then
      local own, forward = rawget(module, "forward"), module.forward
      rawset(module, "forward", function(...) return checkpoint(forward, ...) end)
      changed[#changed + 1] = { module = module, own = own }
    end
  end
  return function()
    for _, one in ipairs(changed) do rawset(one.module, "forward", one.own) end
  end
end
