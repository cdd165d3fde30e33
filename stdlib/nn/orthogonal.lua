-- stdlib/nn/orthogonal.lua: a parameter whose rows or columns are orthonormal.
--
-- As torch.nn.utils.parametrizations.orthogonal: what is trained is any matrix, of which a map
-- makes an orthogonal one. The map gives the identity at first, and the buffer `base`, the
-- orthogonal matrix of the parameter's first value, is multiplied by it (a trivialization;
-- Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, 2019).
-- n rows, k columns, n >= k: others are transposed.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local linalg = require "ltrain.linalg"
local parametrization_list = require "ltrain.nn.parametrization_list"
local parametrize = require "ltrain.nn.parametrize"

local who <const> = "orthogonal"

local function transposed(x) return x:transpose(-2, -1) end

local function like(x) return { dtype = x.dtype, device = x.device } end

-- The first k columns of the identity, and x with its columns continued by zeros to a square.
local function eye(n, k, x) return c.eye(n, k, like(x)) end
local function squared(x, n, k)
  if n == k then return x end
  local shape = x.shape
  shape[#shape] = n - k
  return c.cat({ x, c.zeros(shape, like(x)) }, -1)
end

local MAPS <const> = {}

function MAPS.matrix_exp(x, n, k)
  local a = squared(x:tril(), n, k)
  local y = linalg.matrix_exp(a - transposed(a))
  return y:narrow(-1, 1, k)
end

function MAPS.cayley(x, n, k)
  local a, one = squared(x:tril(), n, k), eye(n, n, x)
  a = a - transposed(a)
  local y = linalg.solve(one - a * 0.5, one + a * 0.5)
  return y:narrow(-1, 1, k)
end

-- The product of the reflections I - 2 v v^T / |v|^2 by the columns v of V is I - V T V^T, where
-- the inverse of T is the upper triangle of V^T V with half the diagonal. The diagonal of x, of 1
-- and -1, is the signs of the columns.
function MAPS.householder(x, n, k)
  local v = x:tril(-1) + eye(n, k, x)
  local products = transposed(v):matmul(v)
  local inverse = products:triu() - products:triu():tril() * 0.5
  local one = eye(n, k, x)
  local weights = linalg.solve_triangular(inverse, transposed(v):matmul(one), { upper = true })
  local y = one - v:matmul(weights)
  return y * x:detach():diagonal(0, -2, -1):trunc():unsqueeze(-2)
end

-- The Q of A = QR where the diagonal of R is not negative.
local function orthogonal_part(a)
  local q, r = linalg.qr(a)
  return q * r:diagonal(0, -2, -1):sign():unsqueeze(-2)
end

local function is_orthogonal(q)
  local eps = q.dtype == "f64" and 2.0 ^ -52 or 2.0 ^ -23
  local n = q.shape[q.ndim]
  return c.allclose(transposed(q):matmul(q), eye(n, nil, q), { atol = 10 * n * eps })
end

-- What householder makes an orthogonal part of x [n, k] of: the reflections of its QR.
local function reflections(x, n, k)
  x = x:clone()
  local y = c.zeros_like(x)
  for j = 1, k do
    local column = x:narrow(-2, j, n - j + 1):narrow(-1, j, 1)
    local first = column:narrow(-2, 1, 1)
    local length = linalg.vector_norm(column, 2, -2, true)
    local sign = c.where(first:lt(0), -1.0, 1.0):to(x.dtype)
    local pivot = first + sign * length
    local v = c.where(pivot:eq(0), c.zeros_like(column), column / pivot)
    v:narrow(-2, 1, 1):fill_(1.0)
    local rest = x:narrow(-2, j, n - j + 1)
    local tau = 2 / (v * v):sum(-2, true)
    x:narrow(-2, j, n - j + 1):copy_(rest - v:matmul(transposed(v):matmul(rest)) * tau)
    y:narrow(-2, j, n - j + 1):narrow(-1, j, 1):copy_(v)
    y:narrow(-2, j, 1):narrow(-1, j, 1):copy_(-sign)
  end
  return y
end

local Orthogonal = Module:extend("Orthogonal")

function Orthogonal:init(shape, map, use_trivialization)
  self._shape, self._map, self._trivial = shape, map, use_trivialization
end

function Orthogonal:forward(x)
  local n, k = x.shape[x.ndim - 1], x.shape[x.ndim]
  local wide = n < k
  if wide then x, n, k = transposed(x), k, n end
  local q = MAPS[self._map](x, n, k)
  if self._trivial then q = self.base:matmul(q) end
  return wide and transposed(q) or q
end

function Orthogonal:right_inverse(value)
  if not has_shape(value, c.zeros(self._shape)) then
    errors.blame("%s: the value must have the shape of the parameter, %s: got %s", who,
      errors.show(self._shape), errors.show(value))
  end
  local n, k = value.shape[value.ndim - 1], value.shape[value.ndim]
  local wide = n < k
  local q = value
  if wide then q, n, k = transposed(q), k, n end
  if not self._trivial then
    if self._map ~= "householder" then
      errors.blame("%s: a value cannot be assigned to %s with use_trivialization = false", who,
        self._map)
    end
    local y = reflections(q, n, k)
    return wide and transposed(y) or y
  end
  if n > k then
    local shape = q.shape
    shape[#shape] = n - k
    q = orthogonal_part(c.cat({ q, c.randn(shape, like(q)) }, -1))
  else
    q = is_orthogonal(q) and q:clone() or orthogonal_part(q)
  end
  if self.base then self.base:copy_(q) else self:register_buffer("base", q) end
  return -(c.eye(value.shape[value.ndim - 1], value.shape[value.ndim], like(value))
    + c.zeros_like(value))
end

local OPTIONS <const> = config.signature {
  { "name", type = "string", default = "weight", doc = "the parameter" },
  { "orthogonal_map", type = "string", choices = { "matrix_exp", "cayley", "householder" },
    doc = "by default 'matrix_exp' of a square matrix, else 'householder'" },
  { "use_trivialization", type = "boolean", default = true,
    doc = "whether it starts from the parameter's value, and values can be assigned" },
}

--- Makes a parameter of a module an orthogonal matrix; returns the module.
return function(module, ...)
  local o = config.arguments(who, OPTIONS, ...)
  local weight = parametrize.parameter(module, o.name, who)
  if weight.ndim < 2 then
    errors.blame("%s: needs a matrix: got %s", who, errors.show(weight))
  end
  local n, k = weight.shape[weight.ndim - 1], weight.shape[weight.ndim]
  local map = o.orthogonal_map or n == k and "matrix_exp" or "householder"
  local made = Orthogonal(weight.shape, map, o.use_trivialization)
  if not o.use_trivialization and map ~= "householder" then made.right_inverse = false end
  return parametrization_list(module, o.name, made, { unsafe = true })
end
