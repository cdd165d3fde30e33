-- stdlib/linalg/norms.lua: norms of vectors and matrices.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local norms = {}

local VECTOR <const> = {
  dim = { type = "integer|table", doc = "the dims of a vector; by default all" },
  keepdim = { type = "boolean", default = false, doc = "keep the dims, with size 1" },
  dtype = { type = "string", doc = "convert x to it first" },
}

-- By the p-norm; ord 0 counts what is not zero, infinities give the largest and the smallest.
local function of_vectors(x, ord, dims, keepdim)
  local o = { dims = dims, keepdim = keepdim }
  if ord == math.huge then return x:abs():amax(o) end
  if ord == -math.huge then return x:abs():amin(o) end
  if ord == 0 then return x:ne(0):to(x.dtype):sum(o) end
  if ord < 0 then return x:abs():pow(ord):sum(o):pow(1 / ord) end
  o.p = ord
  return x:norm(o)
end

--- The norm of vectors: (sum |x|^ord)^(1 / ord), with `ord` 2 by default; the largest |x| for
--- math.huge, the smallest for -math.huge, the number of nonzero elements for 0.
function norms.vector_norm(x, ord, options)
  local where <const> = "linalg.vector_norm"
  if type(ord) == "table" then ord, options = nil, ord end
  local o = config.check(options, VECTOR, where)
  ord = config.argument(ord or 2, "number", where, "ord")
  batched_matrices.check(x, where, 0)
  if o.dtype then x = x:to(o.dtype) end
  return of_vectors(x, ord, o.dim, o.keepdim)
end

local MATRIX <const> = {
  dim = { type = "table", default = { -2, -1 }, doc = "the two dims of a matrix" },
  keepdim = { type = "boolean", default = false, doc = "keep the dims, with size 1" },
  dtype = { type = "string", doc = "convert A to it first" },
}

-- A dim from 1, of a tensor or list of `n` dims.
local function place(dim, n, where)
  local at = dim < 0 and dim + n + 1 or dim
  if at < 1 or at > n then errors.blame("%s: dim %d is out of 1..%d", where, dim, n) end
  return at
end

-- The largest or smallest sum over `summed`; `other` is a dim of what is left.
local function of_sums(A, summed, other, most)
  local sums = A:abs():sum(summed, true)
  if most then return sums:amax(other, true) end
  return sums:amin(other, true)
end

-- Norms with both dims kept, of size 1.
local function of_matrices(A, ord, rows, columns, where)
  if ord == "fro" then return A:norm { p = 2, dims = { rows, columns }, keepdim = true } end
  if ord == 1 or ord == -1 then return of_sums(A, rows, columns, ord > 0) end
  if ord == math.huge or ord == -math.huge then return of_sums(A, columns, rows, ord > 0) end
  local last = A:movedim({ rows, columns }, { -2, -1 })
  local _, S = batched_matrices.svd(last, where)
  local y
  if ord == "nuc" or S.shape[S.ndim] == 0 then
    y = S:sum(-1)
  else
    y = ord > 0 and S:amax(-1) or S:amin(-1)
  end
  local shape = A.shape
  shape[rows], shape[columns] = 1, 1
  return y:reshape(shape)
end

local function matrix_norm(A, ord, o, where)
  batched_matrices.check(A, where)
  local first, second = o.dim[1], o.dim[2]
  if #o.dim ~= 2 then errors.blame("%s: dim names two dims: got %d", where, #o.dim) end
  first, second = place(first, A.ndim, where), place(second, A.ndim, where)
  if first == second then errors.blame("%s: both dims are dim %d", where, first) end
  if o.dtype then A = A:to(o.dtype) end
  local y = of_matrices(A, ord, first, second, where)
  if o.keepdim then return y end
  return y:squeeze { dims = { first, second } }
end

local ORDERS <const> = { fro = true, nuc = true, [1] = true, [-1] = true, [2] = true, [-2] = true,
  [math.huge] = true, [-math.huge] = true }

local function check_order(ord, where)
  if not ORDERS[ord] then
    errors.blame("%s: ord must be 'fro', 'nuc', 1, -1, 2, -2, math.huge or -math.huge: got %s",
      where, errors.show(ord))
  end
end

--- The norm of matrices: 'fro' (default), the square root of the sum of squares; 'nuc', the sum of
--- the singular values; 2 and -2, the largest and the smallest of them; 1 and -1, the largest and
--- the smallest sum of a column's |x|; math.huge and -math.huge, of a row's.
function norms.matrix_norm(A, ord, options)
  local where <const> = "linalg.matrix_norm"
  if type(ord) == "table" then ord, options = nil, ord end
  local o = config.check(options, MATRIX, where)
  if ord == nil then ord = "fro" end
  check_order(ord, where)
  return matrix_norm(A, ord, o, where)
end

--- Without `ord` and `dim`, the vector_norm of all elements; with one dim, vector_norm; with two
--- dims, or an `ord` and a matrix, matrix_norm.
function norms.norm(x, ord, options)
  local where <const> = "linalg.norm"
  if type(ord) == "table" then ord, options = nil, ord end
  local o = config.check(options, VECTOR, where)
  local dims = type(o.dim) == "number" and { o.dim } or o.dim
  batched_matrices.check(x, where, 0)
  local of_matrix = dims and #dims == 2 or not dims and x.ndim == 2
  if ord ~= nil and of_matrix then
    check_order(ord, where)
    o.dim = dims or { 1, 2 }
    return matrix_norm(x, ord, o, where)
  end
  if type(ord) == "string" or (ord ~= nil and not dims and x.ndim > 2) then
    errors.blame("%s: ord %s needs a matrix: got %s", where, errors.show(ord),
      errors.show_shape(x))
  end
  if o.dtype then x = x:to(o.dtype) end
  return of_vectors(x, ord or 2, dims, o.keepdim)
end

return norms
