-- stdlib/nn/module_parts.lua: register_parameter, add_module and set_submodule: parts of a module,
-- set by name.
--
-- `net.head = layer` does the same: these are for names that are computed.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local parts = {}

local function check_name(name, who)
  if type(name) == "string" and name ~= "" and not name:find(".", 1, true) then return end
  errors.blame("%s: the name must be a string without dots: got %s", who, errors.show(name))
end

local function check_module(module, who)
  if walk.is_module(module) then return end
  errors.blame("%s: a module is needed: got %s", who, errors.show(module))
end

--- Sets field `name` to a parameter: `net:register_parameter("bias", lt.parameter(lt.zeros(3)))`;
--- nil: no parameter.
function parts.register_parameter(self, name, parameter)
  check_name(name, "register_parameter")
  if parameter ~= nil and not c.is_parameter(parameter) then
    errors.blame("register_parameter: '%s' must be a parameter, lt.parameter(x): got %s", name,
      errors.show(parameter))
  end
  self[name] = parameter
end

--- Sets field `name` to a module; "0", "1", ... are the positions 1, 2, ...
function parts.add_module(self, name, module)
  check_name(name, "add_module")
  check_module(module, "add_module")
  self[name:find "^%d+$" and tonumber(name) + 1 or name] = module
end

--- The same as add_module.
function parts.register_module(self, name, module) self:add_module(name, module) end

--- Replaces the submodule at a path, `net:set_submodule("body.0", layer)`, or adds one.
function parts.set_submodule(self, path, module)
  check_module(module, "set_submodule")
  local above, name = tostring(path):match "^(.*)%.([^.]+)$"
  local owner = above and self:get_submodule(above) or self
  for _, child in ipairs(walk.children(owner)) do
    if child.name == (name or path) then
      child.holder[child.key] = module
      return
    end
  end
  owner:add_module(name or path, module)
end

return parts
