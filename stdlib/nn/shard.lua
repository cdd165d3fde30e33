--- stdlib/nn/shard.lua: lt.shard(module): says of a module that strategies which divide parameters
--- gather it by itself (PyTorch's fully_shard).
local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local OPTIONS <const> = {
  reshard_after_forward = { type = "boolean",
    doc = "let its parameters go after its forward, and gather them again for backward; by default "
      .. "the strategy's" },
}

--- Marks a module as a unit of strategies.Sharded: under stage 3 its parameters are gathered
--- together, where it is called, besides the units that the strategy finds. Returns the module.
--- Under other strategies it has no effect. Options: reshard_after_forward (the strategy's).
---@param module Module
---@param options table|nil
return function(module, options)
  if not walk.is_module(module) or rawget(module, "__name") then
    errors.blame("shard: needs a module: got %s", errors.show(module))
  end
  local o = config.check(options, OPTIONS, "shard")
  if module.forward == Module.forward and not rawget(module, "_forward_methods") then
    errors.blame("shard: %s has no forward, and is never called: shard the modules in it, or "
      .. "register what is called with lt.register_forward_method first", walk.class_name(module))
  end
  rawset(module, "_shard", { reshard_after_forward = o.reshard_after_forward })
  return module
end
