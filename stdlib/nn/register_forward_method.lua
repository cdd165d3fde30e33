--- stdlib/nn/register_forward_method.lua: methods of modules that compute with parameters besides
--- forward, such as generate or encode (PyTorch's register_fsdp_forward_method).
--
-- A strategy that has parts of the parameters gathers them where a module is called, which a method
-- is not. Registering one replaces it, in the object, by a function that asks forward_methods.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local forward_methods = require "ltrain.nn.forward_methods"
local walk = require "ltrain.core.walk"

local NAME <const> = "register_forward_method"

local function check(module, name)
  if not walk.is_module(module) or rawget(module, "__name") then
    errors.blame("%s: needs a module: got %s", NAME, errors.show(module))
  end
  config.argument(name, "string", NAME, "name")
  if name == "forward" then
    errors.blame("%s: 'forward' needs none: parameters are gathered where %s is called: write "
      .. "module(x)", NAME, walk.class_name(module))
  elseif type(module[name]) ~= "function" then
    errors.blame("%s: %s has no method '%s'", NAME, walk.class_name(module), name)
  end
end

--- Registers a method of a module, by its name, that computes with the module's parameters: under
--- stage 3 of strategies.Sharded these are gathered where `module:name(...)` is called, as in a
--- call of the module. Under other strategies it has no effect.
---@param module Module
---@param name string
return function(module, name)
  check(module, name)
  local names = rawget(module, "_forward_methods") or {}
  rawset(module, "_forward_methods", names)
  if names[name] then return end
  names[name] = true
  local method = module[name]
  rawset(module, name, function(self, ...)
    local call = forward_methods[self]
    if call then return call(method, self, ...) end
    return method(self, ...)
  end)
end
