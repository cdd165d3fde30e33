-- stdlib/linalg/factorizations.lua: matrix factorizations by LAPACK: Cholesky, QR, SVD,
-- eigenvalues.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local factorizations = {}

local CHOLESKY <const> = {
  upper = { type = "boolean", default = false, doc = "return the upper factor U of A = U^T U "
    .. "instead" },
}

--- The lower triangular factor L of A = L L^T, for symmetric positive-definite A [B..., N, N], of
--- which the lower triangle is read.
function factorizations.cholesky(A, options)
  local o = config.check(options, CHOLESKY, "linalg.cholesky")
  local L = c.linalg.cholesky(A)
  return o.upper and L:transpose(-2, -1) or L
end

local SYMMETRIC <const> = {
  UPLO = { type = "string", default = "L", choices = { "L", "U" },
    doc = "which triangle of A is read" },
}

--- Eigenvalues of symmetric matrices [B..., N, N], ascending, and their eigenvectors as columns.
--- Signs are arbitrary; the derivative of the vectors is infinite if eigenvalues are equal.
function factorizations.eigh(A, options)
  local o = config.check(options, SYMMETRIC, "linalg.eigh")
  if o.UPLO == "U" then A = batched_matrices.check(A, "linalg.eigh"):transpose(-2, -1) end
  return c.linalg.eigh(A)
end

--- The eigenvalues only.
function factorizations.eigvalsh(A, options)
  local o = config.check(options, SYMMETRIC, "linalg.eigvalsh")
  if o.UPLO == "U" then A = batched_matrices.check(A, "linalg.eigvalsh"):transpose(-2, -1) end
  return (c.runtime.operation("linalg_eigh", "linalg.eigvalsh")(A))
end

local ORTHOGONAL <const> = {
  mode = { type = "string", default = "reduced", choices = { "reduced", "complete", "r" },
    doc = "'complete': all M columns of Q; 'r': only R, Q is empty" },
}

--- Q [B..., M, K] with orthonormal columns and upper triangular R [B..., K, N] with A = Q R; K is
--- the smaller of M and N.
function factorizations.qr(A, options)
  local o = config.check(options, ORTHOGONAL, "linalg.qr")
  local Q, R = c.linalg.qr(A, { complete = o.mode == "complete" })
  if o.mode == "r" then Q = c.zeros({ 0 }, { dtype = A.dtype, device = A.device }) end
  return Q, R
end

local SINGULAR <const> = {
  full_matrices = { type = "boolean", default = true,
    doc = "U [M, M] and Vh [N, N] instead of [M, K] and [K, N]" },
}

--- U, S, Vh with A = U diag(S) Vh, the K singular values descending; K is the smaller of M and N.
--- Signs are arbitrary; the derivative of U and Vh is infinite if singular values are equal.
function factorizations.svd(A, options)
  local o = config.check(options, SINGULAR, "linalg.svd")
  return c.linalg.svd(A, { full_matrices = o.full_matrices })
end

--- The singular values [B..., K] only.
function factorizations.svdvals(A)
  local _, S = batched_matrices.svd(A, "linalg.svdvals")
  return S
end

return factorizations
