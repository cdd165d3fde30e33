-- stdlib/linalg/solvers.lua: systems of linear equations, inverses and determinants.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local solvers = {}

-- A B and (A^T B^T)^T are the same, seen from the other side.
local function turned(x) return x:transpose(-2, -1) end

-- Whether B [B..., N] is a vector for each matrix of A, as PyTorch decides.
local function holds_vectors(A, B)
  if B.ndim == 1 then return true end
  if B.ndim ~= A.ndim - 1 then return false end
  for k = 1, B.ndim do
    if A.shape[k] ~= B.shape[k] then return false end
  end
  return true
end

local function check(A, B, where)
  batched_matrices.square(A, where)
  batched_matrices.check(B, where, 1)
end

local SOLVE <const> = {
  left = { type = "boolean", default = true, doc = "false: solve X A = B" },
}

--- Solves A X = B for X, with A [B..., N, N] and B [B..., N, K], or vectors [B..., N]. Batch dims
--- broadcast.
function solvers.solve(A, B, options)
  local where <const> = "linalg.solve"
  local o = config.check(options, SOLVE, where)
  check(A, B, where)
  local vectors = holds_vectors(A, B)
  if vectors and not o.left then
    errors.blame("%s: vectors B of %s cannot stand on the left: left = true", where,
      errors.show_shape(B))
  end
  if vectors then B = B:unsqueeze(-1) end
  if not o.left then A, B = turned(A), turned(B) end
  A, B = batched_matrices.broadcast(A, B, where)
  local X = c.linalg.solve(A, B)
  if vectors then X = X:squeeze(-1) end
  return o.left and X or turned(X)
end

local TRIANGULAR <const> = {
  upper = { type = "boolean", required = true, doc = "whether A is upper triangular" },
  left = { type = "boolean", default = true, doc = "false: solve X A = B" },
  unitriangular = { type = "boolean", default = false, doc = "treat its diagonal as ones" },
}

--- Solves A X = B for X, with triangular A [B..., N, N], whose other half is not read, and B [B...,
--- N, K]. A zero on the diagonal gives infinity or NaN. Does not need LAPACK.
function solvers.solve_triangular(A, B, options)
  local where <const> = "linalg.solve_triangular"
  local o = config.check(options, TRIANGULAR, where)
  check(A, B, where)
  batched_matrices.check(B, where)
  local upper = o.upper
  if not o.left then A, B, upper = turned(A), turned(B), not upper end
  A, B = batched_matrices.broadcast(A, B, where)
  local X = c.linalg.solve_triangular(A, B, { upper = upper, unitriangular = o.unitriangular })
  return o.left and X or turned(X)
end

--- The inverse of A [B..., N, N]; solve(A, B) is faster and more accurate than inv(A) @ B.
function solvers.inv(A)
  local X = batched_matrices.inverse(A, "linalg.inv")
  return X
end

-- The product of sizes from..to of a shape.
local function count(shape, from, to)
  local n = 1
  for k = from, to do n = n * shape[k] end
  return n
end

local INVERSE <const> = {
  ind = { type = "integer", default = 2, min = 1, doc = "number of dims in M..." },
}

--- The inverse of A with respect to tensordot: for A [M..., N...], where M... are the first `ind`
--- dims and have as many elements as N..., a tensor [N..., M...].
function solvers.tensorinv(A, options)
  local where <const> = "linalg.tensorinv"
  local ind <const> = config.check(options, INVERSE, where).ind
  batched_matrices.check(A, where, 1)
  local m <const> = count(A.shape, 1, ind)
  if ind >= A.ndim or m * m ~= A:numel() then
    errors.blame("%s: the first %d dims of %s have not as many elements as the others", where, ind,
      errors.show_shape(A))
  end
  local shape = table.move(A.shape, ind + 1, A.ndim, 1, {})
  table.move(A.shape, 1, ind, #shape + 1, shape)
  return batched_matrices.inverse(A:reshape { m, m }, where):reshape(shape)
end

local TENSOR_SOLVE <const> = {
  dims = { type = "table", doc = "dims of A that are moved to its end first" },
}

--- Solves tensordot(A, X) = B for X, with A [M..., N...], where M..., the dims of B, have as many
--- elements as N..., the dims of X.
function solvers.tensorsolve(A, B, options)
  local where <const> = "linalg.tensorsolve"
  local o <const> = config.check(options, TENSOR_SOLVE, where)
  batched_matrices.check(A, where, 1)
  batched_matrices.check(B, where, 0)
  if o.dims then
    local last = {}
    for k = 1, #o.dims do last[k] = k - #o.dims - 1 end
    A = A:movedim(o.dims, last)
  end
  local m <const> = B:numel()
  if m * m ~= A:numel() then
    errors.blame("%s: A %s must have as many elements as B %s squared", where,
      errors.show_shape(A), errors.show_shape(B))
  end
  local shape <const> = table.move(A.shape, B.ndim + 1, A.ndim, 1, {})
  return c.linalg.solve(A:reshape { m, m }, B:reshape { m, 1 }):reshape(shape)
end

--- The determinant of each matrix [B..., N, N].
function solvers.det(A)
  local d = c.linalg.det(A)
  return d
end

--- The sign of the determinant and the logarithm of its absolute value.
function solvers.slogdet(A)
  return c.linalg.slogdet(A)
end

return solvers
