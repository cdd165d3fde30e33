-- stdlib/ops/tensordot.lua: lt.tensordot, a product over several dims as one of matrices.

local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local function shape_text(shape) return "[" .. table.concat(shape, ", ") .. "]" end

local function blame(...) errors.blame("tensordot: " .. ..., select(2, ...)) end

-- The dims of x that are left in order, and those that are summed, from 1.
local function split(x, dims)
  local gone, left, list = {}, {}, {}
  for k, dim in ipairs(type(dims) == "table" and dims or {dims}) do
    config.argument(dim, "integer", "tensordot", "dims")
    local place = dim < 0 and dim + x.ndim + 1 or dim
    if place < 1 or place > x.ndim or gone[place] then
      blame("dim %d is out of range or given twice (shape %s)", dim, shape_text(x.shape))
    end
    gone[place], list[k] = true, place
  end
  for k = 1, x.ndim do
    if not gone[k] then left[#left + 1] = k end
  end
  return left, list
end

local function sizes(x, dims)
  local list, n = {}, 1
  for k, dim in ipairs(dims) do
    list[k] = x.shape[dim]
    n = n * list[k]
  end
  return list, n
end

local function matrix(x, first, second, rows, columns)
  local order = table.move(second, 1, #second, #first + 1, {table.unpack(first)})
  if #order > 1 then x = x:permute(order) end
  return x:reshape{rows, columns}
end

-- The last n dims of a and the first n of b.
local function inner(a, n)
  if n < 0 or n > a.ndim then blame("%d dims of %s", n, shape_text(a.shape)) end
  local last, first = {}, {}
  for k = 1, n do last[k], first[k] = a.ndim - n + k, k end
  return last, first
end

--- The product of a and b, summed over the last `dims` dims of a and as many first ones of b, or
--- over dims = {dims of a, dims of b}.
---@param a Tensor
---@param b Tensor
---@param dims integer|table default 2
return function(a, b, dims)
  dims = call_form.own("dims", "tensordot", dims) or 2
  local of_a, of_b
  if type(dims) == "table" then
    of_a, of_b = dims[1], dims[2]
  else
    of_a, of_b = inner(a, config.argument(dims, "integer", "tensordot", "dims"))
  end
  local left_a, sum_a = split(a, of_a)
  local left_b, sum_b = split(b, of_b)
  local inner_a, n = sizes(a, sum_a)
  local inner_b = sizes(b, sum_b)
  local shape, rows = sizes(a, left_a)
  local rest, columns = sizes(b, left_b)
  if table.concat(inner_a, " ") ~= table.concat(inner_b, " ") then
    blame("sizes %s and %s of the summed dims differ: %s and %s", shape_text(inner_a),
      shape_text(inner_b), shape_text(a.shape), shape_text(b.shape))
  end
  local y = matrix(a, left_a, sum_a, rows, n):matmul(matrix(b, sum_b, left_b, n, columns))
  return y:reshape(table.move(rest, 1, #rest, #shape + 1, shape))
end
