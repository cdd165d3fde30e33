-- stdlib/linalg/roots.lua: the square root of a symmetric matrix and the polar decomposition.
--
-- N. Higham, Functions of Matrices, 2008, chapters 6 and 8.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local roots = {}

--- The symmetric X with X X = A, of symmetric positive-definite matrices [B..., N, N], of which the
--- lower triangle is read.
function roots.matrix_sqrth(A)
  batched_matrices.square(A, "linalg.matrix_sqrth")
  local w <const>, V <const> = c.linalg.eigh(A)
  local X <const> = (V * w:sqrt():unsqueeze(-2)):matmul(V:transpose(-2, -1))
  return X
end

--- U [B..., M, N] of orthonormal columns and the symmetric H [B..., N, N], positive-semidefinite,
--- with A = U H, for M at least N: U is the nearest matrix with orthonormal columns.
function roots.polar(A)
  local where <const> = "linalg.polar"
  batched_matrices.check(A, where)
  if A.shape[A.ndim - 1] < A.shape[A.ndim] then
    errors.blame("%s: needs as many rows as columns at least, got %s", where, errors.show_shape(A))
  end
  local W <const>, S <const>, Vh <const> = batched_matrices.svd(A, where)
  return W:matmul(Vh), (Vh:transpose(-2, -1) * S:unsqueeze(-2)):matmul(Vh)
end

return roots
