-- stdlib/ops/products.lua: products of matrices and vectors by PyTorch's names: lt.mm, lt.mv,
-- lt.inner, lt.addmv, lt.addr, lt.addbmm.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local products = {}

local SCALED <const> = config.signature {
  { "beta", type = "number", default = 1, doc = "factor of x" },
  { "alpha", type = "number", default = 1, doc = "factor of the product" },
}

local function check(who, a, b, a_dims, b_dims)
  arguments.tensor(a, who, "a")
  arguments.tensor(b, who, "b")
  if a.ndim ~= a_dims or b.ndim ~= b_dims then
    errors.blame("%s: needs tensors of %d and %d dims: got %s and %s", who, a_dims, b_dims,
      errors.show_shape(a), errors.show_shape(b))
  end
end

--- The product of two matrices.
---@param a Tensor [M, K]
---@param b Tensor [K, N] -> [M, N]
function products.mm(a, b)
  check("mm", a, b, 2, 2)
  return a:matmul(b)
end

--- The product of a matrix and a vector.
---@param a Tensor [M, K]
---@param b Tensor [K] -> [M]
function products.mv(a, b)
  check("mv", a, b, 2, 1)
  return a:matmul(b)
end

--- Sums of products over the last dims of both.
---@param a Tensor [..., K]
---@param b Tensor [..., K] -> the other dims of a, then those of b
function products.inner(a, b)
  arguments.tensor(a, "inner", "a")
  arguments.tensor(b, "inner", "b")
  if a.ndim == 0 or b.ndim == 0 then return a * b end
  local n <const> = a.shape[a.ndim]
  if b.shape[b.ndim] ~= n then
    errors.blame("inner: the last dims of %s and %s differ", errors.show_shape(a),
      errors.show_shape(b))
  end
  local shape = table.move(a.shape, 1, a.ndim - 1, 1, {})
  table.move(b.shape, 1, b.ndim - 1, #shape + 1, shape)
  local rows <const> = a:numel() == 0 and a:reshape { a:numel() // math.max(n, 1), n }
    or a:reshape { -1, n }
  return rows:matmul(b:reshape { b:numel() // math.max(n, 1), n }:t()):reshape(shape)
end

-- beta x + alpha y; x, even NaN, does not count where beta is 0.
local function added(who, x, y, ...)
  arguments.tensor(x, who, "x")
  local o <const> = config.arguments(who, SCALED, ...)
  for _, name in ipairs { "beta", "alpha" } do
    if not arguments.is_float(y) and not math.tointeger(o[name]) then
      errors.blame("%s: %s = %g does not fit into a tensor of %s", who, name, o[name], y.dtype)
    end
  end
  if o.alpha ~= 1 then y = y * o.alpha end
  if o.beta == 0 then return (c.zeros_like(x) + y):to(y.dtype) end
  return (o.beta == 1 and x or x * o.beta) + y
end

--- beta x + alpha a b, for a matrix a and a vector b.
---@param x Tensor [M]
---@param a Tensor [M, K]
---@param b Tensor [K] -> [M]
function products.addmv(x, a, b, beta, alpha)
  return (added("addmv", x, products.mv(a, b), beta, alpha))
end

--- beta x + alpha a b^T, for vectors.
---@param x Tensor [M, N]
---@param a Tensor [M]
---@param b Tensor [N] -> [M, N]
function products.addr(x, a, b, beta, alpha)
  check("addr", a, b, 1, 1)
  return (added("addr", x, a:outer(b), beta, alpha))
end

--- beta x + alpha times the sum of the products of two batches of matrices.
---@param x Tensor [M, N]
---@param a Tensor [B, M, K]
---@param b Tensor [B, K, N] -> [M, N]
function products.addbmm(x, a, b, beta, alpha)
  check("addbmm", a, b, 3, 3)
  return (added("addbmm", x, a:matmul(b):sum(1), beta, alpha))
end

return products
