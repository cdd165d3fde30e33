-- stdlib/nn/parametrization_list.lua: a parameter computed by modules of a script, one after
-- another.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local parametrize = require "ltrain.nn.parametrize"
local walk = require "ltrain.core.walk"

local who <const> = "register_parametrization"

-- What the modules get first is `original`, or `original0`, `original1`, ... where right_inverse of
-- the first gives several tensors. The modules are at positions 1, 2, ...
local ParametrizationList = Module:extend("ParametrizationList")

local function set(parameter, value)
  if value == parameter then return end
  local _ <close> = c.allow_update()
  parameter:copy_(value)
end

function ParametrizationList:init(first, parameter)
  self[1] = first
  local value = parameter
  if class.has_method(first, "right_inverse") then
    value = c.no_grad(first.right_inverse, first, parameter:detach())
  end
  if c.is_tensor(value) then
    set(parameter, value)
    self.original = parameter
    return
  end
  if type(value) ~= "table" or #value == 0 then
    errors.blame("%s: right_inverse must return a tensor or a list of tensors: got %s", who,
      errors.show(value))
  end
  for k, x in ipairs(value) do
    local name = ("original%d"):format(k - 1)
    self[name] = c.parameter(x:detach():clone(), { requires_grad = parameter.requires_grad })
  end
end

-- The parameters that it is computed from, in order.
local function originals_of(self)
  if self.original then return { self.original } end
  local list = {}
  while self[("original%d"):format(#list)] do
    list[#list + 1] = self[("original%d"):format(#list)]
  end
  return list
end

function ParametrizationList:forward()
  local value = self[1](table.unpack(originals_of(self)))
  for k = 2, #self do value = self[k](value) end
  return value
end

--- Takes a value, through right_inverse of each module.
function ParametrizationList:assign(value)
  for k = #self, 1, -1 do
    if not class.has_method(self[k], "right_inverse") then
      errors.blame("%s has no right_inverse: a value cannot be assigned",
        walk.class_name(self[k]))
    end
    value = c.no_grad(self[k].right_inverse, self[k], value)
  end
  local originals = originals_of(self)
  for k, x in ipairs(c.is_tensor(value) and { value } or value) do set(originals[k], x) end
end

-- Raises where the module makes something else of a value.
local function check_value(module, name, value, before)
  if not c.is_tensor(value) then
    errors.blame("%s: forward must return a tensor: got %s", who, errors.show(value))
  elseif value.dtype ~= before.dtype or not has_shape(value, before) then
    errors.blame("%s: '%s' of %s is %s %s, and would become %s %s: write unsafe = true if it is to",
      who, name, walk.class_name(module), errors.show_shape(before), before.dtype,
      errors.show_shape(value), value.dtype)
  end
end

local OPTIONS <const> = {
  unsafe = { type = "boolean", default = false, doc = "whether shape and dtype may change" },
}

--- Makes the parameter `name` of a module what `parametrization` makes of it; returns the module.
return function(module, name, parametrization, options)
  local o = config.check(options, OPTIONS, who)
  if not walk.is_module(parametrization) then
    errors.blame("%s: the parametrization must be a module: got %s", who,
      errors.show(parametrization))
  end
  local made = walk.is_module(module) and parametrize.computed(module, name)
  if class.is_a(made, ParametrizationList) then
    local before = c.no_grad(made.forward, made)
    if not o.unsafe then
      check_value(module, name, c.no_grad(parametrization, before), before)
    end
    made[#made + 1] = parametrization:train(module.training)
    return module
  end
  local parameter = parametrize.parameter(module, name, who)
  parametrization:train(module.training)
  local before = parameter:detach():clone()
  made = ParametrizationList(parametrization, parameter)
  if not o.unsafe then
    check_value(module, name, c.no_grad(made.forward, made), before)
  end
  return parametrize.register(module, name, made)
end
