--- stdlib/core/graph_arguments.lua: nested values that CUDA graphs are captured with, and filled
--- with later: tensors in tables without a metatable, beside other values.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local graph_arguments = {}

local function is_tree(value) return type(value) == "table" and getmetatable(value) == nil end

--- A copy of `value` in which each tensor is replaced by fn(tensor, name).
local map
function map(value, fn, name)
  if c.is_tensor(value) then return fn(value, name) end
  if not is_tree(value) then return value end
  local copy = {}
  for key, part in next, value do
    copy[key] = map(part, fn, ("%s[%s]"):format(name, errors.show(key)))
  end
  return copy
end
graph_arguments.map = map

local function same_shape(a, b)
  if a.dtype ~= b.dtype or a.device ~= b.device then return false end
  local x, y = a.shape, b.shape
  if #x ~= #y then return false end
  for i = 1, #x do
    if x[i] ~= y[i] then return false end
  end
  return true
end

--- Whether `value` can be filled into `static`: the same shapes, and the same other values.
local is_like
function is_like(static, value)
  if c.is_tensor(static) then
    return c.is_tensor(value) and same_shape(static, value) and not value.requires_grad
  end
  if not is_tree(static) then return rawequal(static, value) or static == value end
  if not is_tree(value) then return false end
  for key, part in next, static do
    if not is_like(part, value[key]) then return false end
  end
  for key in next, value do
    if static[key] == nil then return false end
  end
  return true
end
graph_arguments.is_like = is_like

local function fill(static, value)
  if c.is_tensor(static) then
    if not rawequal(static, value) then static:copy_(value) end
  elseif is_tree(static) then
    for key, part in next, static do fill(part, value[key]) end
  end
end

--- Copies the tensors of `value` into those of `static`.
function graph_arguments.fill(static, value)
  local _ <close> = c.no_grad()
  fill(static, value)
end

--- A tensor that a graph made: the next launch overwrites it, not this copy.
function graph_arguments.copied(tensor)
  local _ <close> = c.no_grad()
  return tensor:detach():clone()
end

return graph_arguments
