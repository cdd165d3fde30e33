--- stdlib/strategies/sharded/recomputed.lua: modules whose activations backward computes again
--- (activation checkpointing: Chen et al. 2016).
local c = require "ltrain.c"
local checkpoint = require "ltrain.nn.checkpoint"
local units = require "ltrain.strategies.sharded.units"
local walk = require "ltrain.core.walk"

-- A list with `n` whose tensors are on the devices that are named at their places.
local function moved(values, devices)
  local list = {}
  for i = 1, values.n do
    list[i] = devices[i] and values[i]:to(devices[i]) or values[i]
  end
  return table.unpack(list, 1, values.n)
end

-- checkpoint(forward, module, ...), but that tensors among its arguments wait on the host.
local function checkpoint_on_host(forward, module, ...)
  local args, devices, host = table.pack(...), {}, {}
  for i = 1, args.n do
    if c.is_tensor(args[i]) then devices[i], host[i] = args[i].device, "cpu" end
  end
  return checkpoint(function(...)
    return forward(module, moved(table.pack(...), devices))
  end, moved(args, host))
end

local function recomputing(forward, on_host)
  return function(...)
    if on_host and c.is_grad_enabled() then return checkpoint_on_host(forward, ...) end
    return checkpoint(forward, ...)
  end
end

--- From here on the modules in `root` that are `wanted`, a list of classes or fn(module, name),
--- keep of their forward only what they are called with; `on_host`: on the host. Returns fn(),
--- which ends that.
return function(root, wanted, on_host)
  local changed = {}
  for _, entry in ipairs(walk.modules(root)) do
    local module = entry.module
    if units.is_meant(entry, wanted) then
      local own, forward = rawget(module, "forward"), module.forward
      rawset(module, "forward", recomputing(forward, on_host))
      changed[#changed + 1] = { module = module, own = own }
    end
  end
  return function()
    for _, one in ipairs(changed) do rawset(one.module, "forward", one.own) end
  end
end
