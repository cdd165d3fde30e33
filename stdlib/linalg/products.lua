-- stdlib/linalg/products.lua: products of several matrices, and of vectors.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local products = {}

--- The n-th power of A [B..., N, N]; for negative n, of its inverse.
function products.matrix_power(A, n)
  local where <const> = "linalg.matrix_power"
  batched_matrices.square(A, where)
  n = config.argument(n, "integer", where, "n")
  local power = n < 0 and batched_matrices.inverse(A, "linalg.matrix_power") or A
  local result
  n = math.abs(n)
  while n > 0 do -- by squares
    if n % 2 == 1 then result = result and result:matmul(power) or power end
    n = n // 2
    if n > 0 then power = power:matmul(power) end
  end
  return result or batched_matrices.eye(A):expand(A.shape):clone()
end

-- Where to split the product of matrices i..j so that it costs least: [i][j].
local function best_splits(sizes, n)
  local cost, split = {}, {}
  for i = 1, n do cost[i], split[i] = { [i] = 0 }, {} end
  for length = 2, n do
    for i = 1, n - length + 1 do
      local j = i + length - 1
      for k = i, j - 1 do
        local own = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
        if not cost[i][j] or own < cost[i][j] then cost[i][j], split[i][j] = own, k end
      end
    end
  end
  return split
end

local function multiply(list, split, i, j)
  if i == j then return list[i] end
  local k = split[i][j]
  return multiply(list, split, i, k):matmul(multiply(list, split, k + 1, j))
end

--- The product of a list of matrices, in the order with the fewest multiplications; the first and
--- the last may be vectors.
---@param tensors table
function products.multi_dot(tensors)
  local where <const> = "linalg.multi_dot"
  if type(tensors) ~= "table" or #tensors < 2 then
    errors.blame("%s: needs a table of at least two tensors", where)
  end
  local list, n = {}, elements.count(tensors)
  for k, x in elements.each(tensors) do
    if not c.is_tensor(x) then
      errors.blame("%s: element %d must be a tensor: got %s", where, k, errors.show(x))
    end
    list[k] = x
  end
  local first, last = list[1].ndim == 1, list[n].ndim == 1
  if first then list[1] = list[1]:unsqueeze(1) end
  if last then list[n] = list[n]:unsqueeze(-1) end
  local sizes = {}
  for k, x in ipairs(list) do
    if x.ndim ~= 2 then
      errors.blame("%s: tensor %d is not a matrix: %s", where, k, errors.show_shape(x))
    end
    if sizes[k] and sizes[k] ~= x.shape[1] then
      errors.blame("%s: tensors %d and %d do not fit: %s x %s", where, k - 1, k,
        errors.show_shape(list[k - 1]), errors.show_shape(x))
    end
    sizes[k], sizes[k + 1] = x.shape[1], x.shape[2]
  end
  local y = multiply(list, best_splits(sizes, n), 1, n)
  if last then y = y:squeeze(-1) end
  if first then y = y:squeeze(1) end
  return y
end

local ALONG <const> = {
  dim = { type = "integer", default = -1, doc = "the dim of the vectors" },
}

--- The cross product of vectors of size 3; other dims broadcast.
function products.cross(a, b, options)
  local where <const> = "linalg.cross"
  local dim = config.check(options, ALONG, where).dim
  local function part(x, k)
    local n = x.ndim
    local at = dim < 0 and dim + n + 1 or dim
    if x.shape[at] ~= 3 then
      errors.blame("%s: dim %d of %s and %s must be of size 3", where, dim, errors.show_shape(a),
        errors.show_shape(b))
    end
    return x:select(dim, k)
  end
  if a.ndim ~= b.ndim then
    errors.blame("%s: needs as many dims: %s and %s", where, errors.show_shape(a),
      errors.show_shape(b))
  end
  local a1, a2, a3 = part(a, 1), part(a, 2), part(a, 3)
  local b1, b2, b3 = part(b, 1), part(b, 2), part(b, 3)
  return c.stack({ a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1 }, dim)
end

--- The inner products of vectors; other dims broadcast.
function products.vecdot(a, b, options)
  local dim = config.check(options, ALONG, "linalg.vecdot").dim
  return (a * b):sum(dim)
end

--- The Vandermonde matrix: powers 0 .. N - 1 of each element of x in a last dim; N is by default
--- the size of x's last dim.
---@param x Tensor [..., M] -> [..., M, N]
function products.vander(x, N)
  batched_matrices.check(x, "linalg.vander", 0)
  if x.ndim == 0 then x = x:reshape { 1 } end
  local count <const> = config.argument(N or x.shape[x.ndim], "integer", "linalg.vander", "N",
    { min = 1 })
  local list = { c.ones_like(x) }
  for k = 2, count do list[k] = list[k - 1] * x end
  return c.stack(list, -1)
end

local DIAGONAL <const> = {
  offset = { type = "integer", default = 0, doc = "above the main diagonal; negative: below" },
  dim1 = { type = "integer", default = -2, doc = "the rows" },
  dim2 = { type = "integer", default = -1, doc = "the columns" },
}

--- The diagonal of each matrix as the last dim, a view.
function products.diagonal(A, options)
  local o = config.check(options, DIAGONAL, "linalg.diagonal")
  return A:diagonal(o.offset, o.dim1, o.dim2)
end

return products
