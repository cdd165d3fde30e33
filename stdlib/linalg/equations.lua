-- stdlib/linalg/equations.lua: systems of linear equations, inverses and determinants.

local batch = require "ltrain.linalg.batch"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local equations = {}

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
  batch.square(A, where)
  batch.check(B, where, 1)
end

local SOLVE <const> = {
  left = { type = "boolean", default = true, doc = "false: X of X A = B" },
}

--- X of A X = B, for A [B..., N, N] and B [B..., N, K], or vectors [B..., N]. Batches broadcast.
function equations.solve(A, B, options)
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
  A, B = batch.broadcast(A, B, where)
  local X = c.linalg.solve(A, B)
  if vectors then X = X:squeeze(-1) end
  return o.left and X or turned(X)
end

local TRIANGULAR <const> = {
  upper = { type = "boolean", required = true, doc = "whether A is an upper triangle" },
  left = { type = "boolean", default = true, doc = "false: X of X A = B" },
  unitriangular = { type = "boolean", default = false, doc = "its diagonal counts as ones" },
}

--- X of A X = B, for triangular A [B..., N, N], whose other half is not read, and B [B..., N, K].
--- A zero on the diagonal gives infinity or NaN. Needs no LAPACK.
function equations.solve_triangular(A, B, options)
  local where <const> = "linalg.solve_triangular"
  local o = config.check(options, TRIANGULAR, where)
  check(A, B, where)
  batch.check(B, where)
  local upper = o.upper
  if not o.left then A, B, upper = turned(A), turned(B), not upper end
  A, B = batch.broadcast(A, B, where)
  local X = c.linalg.solve_triangular(A, B, { upper = upper, unitriangular = o.unitriangular })
  return o.left and X or turned(X)
end

--- The inverse of A [B..., N, N]; solve(A, B) is faster and more exact than inv(A) @ B.
function equations.inv(A)
  local X = batch.inverse(A, "linalg.inv")
  return X
end

--- The determinant of each matrix [B..., N, N].
function equations.det(A)
  local d = c.linalg.det(A)
  return d
end

--- The sign of the determinant and the logarithm of its absolute value.
function equations.slogdet(A)
  return c.linalg.slogdet(A)
end

return equations
