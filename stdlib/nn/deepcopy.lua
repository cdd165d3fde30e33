-- stdlib/nn/deepcopy.lua: copies a module.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

-- A tensor in memory of its own, without history.
local function copy_tensor(x)
  local y = x:detach():clone()
  if c.is_parameter(x) then
    return c.parameter(y, { requires_grad = x.requires_grad })
  end
  return y:requires_grad_(x.requires_grad)
end

-- `done`: copies by what they were made from, so that what is shared stays shared.
local function copy(value, done)
  if type(value) == "userdata" and value.detach then
    done[value] = done[value] or copy_tensor(value)
    return done[value]
  end
  if type(value) ~= "table" then return value end
  if done[value] then return done[value] end
  local new = {}
  done[value] = new
  for key, field in next, value do
    rawset(new, copy(key, done), key == "trainer" and field or copy(field, done))
  end
  return setmetatable(new, getmetatable(value))
end

--- A copy of a module: parameters and buffers with the same values in separate memory, and all
--- other fields. Tensors and tables shared within the module are also shared within the copy.
---@param module Module
return function(module)
  if not walk.is_module(module) then
    errors.blame("nn.deepcopy: needs a module: got %s", errors.show(module))
  end
  return copy(module, {})
end
