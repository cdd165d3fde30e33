-- stdlib/nn/parametrize.lua: a parameter of a module that is computed whenever it is read.
--
-- What computes it has forward() and assign(value): a module under the parameter's name in the
-- field `parametrizations`, with PyTorch's names in it, or an object in the field `_computed`,
-- which is not part of the module. The module gets a class below its own, in which reading that
-- field is a call.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local parametrize = {}

local Parametrizations <const> = Module:extend("Parametrizations")

local function made_by(module, key)
  local list, own = rawget(module, "parametrizations"), rawget(module, "_computed")
  return list and rawget(list, key) or own and own[key]
end

-- While values are kept: those that were computed, by what computes them.
local kept

local function value_of(made)
  if not kept then return (made:forward()) end
  if kept[made] == nil then kept[made] = made:forward() end
  return kept[made]
end

local classes = {} -- by the class of which they are

local function class_below(plain)
  if classes[plain] then return classes[plain] end
  local new = plain:extend("Parametrized" .. plain.__name)
  local read, write = new.__index, new.__newindex
  new.__index = function(self, key)
    local made = made_by(self, key)
    if made then return (value_of(made)) end
    return read(self, key)
  end
  new.__newindex = function(self, key, value)
    local made = made_by(self, key)
    if not made then return write(self, key, value) end
    made:assign(value)
    if kept then kept[made] = nil end
  end
  classes[plain] = new
  return new
end

--- The parameter `name` of a module, which is a plain one; `who` begins the text of errors.
function parametrize.parameter(module, name, who)
  if not walk.is_module(module) then
    errors.blame("%s: needs a module: got %s", who, errors.show(module))
  end
  if type(name) == "string" and made_by(module, name) then
    errors.blame("%s: '%s' of %s is parametrized already", who, name, walk.class_name(module))
  end
  local parameter = type(name) == "string" and rawget(module, name)
  if not c.is_parameter(parameter) then
    errors.blame("%s: %s has no parameter %s", who, walk.class_name(module), errors.show(name))
  end
  return parameter
end

local function is_computing(module)
  return rawget(module, "parametrizations") or rawget(module, "_computed")
end

-- The class in which fields are computed, before the first of them is.
local function begin(module)
  if not is_computing(module) then setmetatable(module, class_below(getmetatable(module))) end
end

-- The class of its own again, after the last of them.
local function finish(module)
  if not is_computing(module) then setmetatable(module, getmetatable(module).super) end
end

--- Makes the parameter `name` what the module `made` computes; returns the module.
function parametrize.register(module, name, made)
  begin(module)
  if not rawget(module, "parametrizations") then module.parametrizations = Parametrizations() end
  module.parametrizations[name] = made
  made:train(module.training)
  rawset(module, name, nil)
  return module
end

--- Makes it a parameter again, with the value `value`.
function parametrize.remove(module, name, value)
  local list = module.parametrizations
  rawset(list, name, nil)
  rawset(module, name, c.is_parameter(value) and value or c.parameter(value))
  if #list:children() > 0 then return end
  rawset(module, "parametrizations", nil)
  finish(module)
end

--- Until what it returns is closed, a value that was computed is kept, and read again.
function parametrize.keep()
  local before = kept
  kept = kept or {}
  return setmetatable({}, { __close = function() kept = before end })
end

--- Makes the field `name` what the object `made` computes, which is not part of the module.
function parametrize.compute(module, name, made)
  begin(module)
  if not rawget(module, "_computed") then rawset(module, "_computed", {}) end
  module._computed[name] = made
  rawset(module, name, nil)
end

--- Ends that.
function parametrize.uncompute(module, name)
  module._computed[name] = nil
  if next(module._computed) ~= nil then return end
  rawset(module, "_computed", nil)
  finish(module)
end

--- The class that a module was made of, before fields of it were computed.
function parametrize.plain_class(module)
  local own = getmetatable(module)
  return is_computing(module) and own.super or own
end

--- What computes the field; nil where nothing does.
parametrize.computed = made_by

--- What computes the parameter; raises where it is a plain one.
function parametrize.made(module, name, who)
  local made = walk.is_module(module) and type(name) == "string" and made_by(module, name)
  if not made then
    errors.blame("%s: %s has no parametrized %s", who, errors.show(module), errors.show(name))
  end
  return made
end

--- Whether the parameter `name` is computed; any, without a name.
function parametrize.has(module, name)
  if name ~= nil then return made_by(module, name) ~= nil end
  return rawget(module, "parametrizations") ~= nil
end

return parametrize
