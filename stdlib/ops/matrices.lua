-- stdlib/ops/matrices.lua: functions of linear algebra that PyTorch has outside of torch.linalg:
-- lt.logdet, lt.pinverse, lt.cholesky_solve, lt.lu, lt.geqrf, lt.svd_lowrank, ...

local arguments = require "ltrain.ops.arguments"
local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local exponential = require "ltrain.linalg.exponential"
local householder = require "ltrain.linalg.householder"
local lu = require "ltrain.linalg.lu"
local pseudoinverses = require "ltrain.linalg.pseudoinverses"
local solvers = require "ltrain.linalg.solvers"

local matrices = {}

local function turned(x) return x:transpose(-2, -1) end

--- The logarithm of the determinant of each matrix [B..., N, N]; NaN where that is negative.
function matrices.logdet(A)
  arguments.tensor(A, "logdet", "A")
  local sign <const>, log <const> = solvers.slogdet(A)
  return log:masked_fill(sign:lt(0), 0 / 0)
end

--- linalg.matrix_exp(A): the matrix exponential.
function matrices.matrix_exp(A)
  arguments.tensor(A, "matrix_exp", "A")
  return exponential.matrix_exp(A)
end

--- linalg.pinv(A, {rtol = rcond}).
function matrices.pinverse(A, rcond)
  rcond = config.argument(rcond or 1e-15, "number", "pinverse", "rcond", { min = 0 })
  local X <const> = pseudoinverses.pinv(A, { rtol = rcond })
  return X
end

local UPPER <const> = config.signature {
  { "upper", type = "boolean", default = false, doc = "the factor is an upper triangle" },
}

--- X of A X = B, of the factor L that linalg.cholesky gives of A.
---@param B Tensor [B..., N, K]
---@param L Tensor [B..., N, N]
function matrices.cholesky_solve(B, L, upper)
  local o <const> = config.arguments("cholesky_solve", UPPER, upper)
  batched_matrices.square(L, "cholesky_solve")
  batched_matrices.check(B, "cholesky_solve")
  if o.upper then L = turned(L) end
  local Y <const> = solvers.solve_triangular(L, B, { upper = false })
  return solvers.solve_triangular(turned(L), Y, { upper = true })
end

--- The inverse of A, of the factor L that linalg.cholesky gives of it.
function matrices.cholesky_inverse(L, upper)
  local o <const> = config.arguments("cholesky_inverse", UPPER, upper)
  batched_matrices.square(L, "cholesky_inverse")
  return matrices.cholesky_solve(batched_matrices.eye(L):expand(L.shape), L, o.upper)
end

local TRIANGULAR <const> = config.signature {
  { "upper", type = "boolean", default = true, doc = "whether A is an upper triangle" },
  { "transpose", type = "boolean", default = false, doc = "of A^T in place of A" },
  { "unitriangular", type = "boolean", default = false, doc = "its diagonal counts as ones" },
}

--- X of A X = B for a triangular A, and a copy of A; linalg.solve_triangular takes these by name.
---@param B Tensor [B..., N, K]
---@param A Tensor [B..., N, N]
function matrices.triangular_solve(B, A, upper, transpose, unitriangular)
  local o <const> = config.arguments("triangular_solve", TRIANGULAR, upper, transpose,
    unitriangular)
  batched_matrices.square(A, "triangular_solve")
  local X <const> = solvers.solve_triangular(o.transpose and turned(A) or A, B,
    { upper = o.upper ~= o.transpose, unitriangular = o.unitriangular })
  return X, A:clone()
end

local LU <const> = config.signature {
  { "pivot", type = "boolean", default = true, choices = { true }, doc = "rows are interchanged" },
  { "get_infos", type = "boolean", default = false,
    doc = "also, as linalg.lu_factor_ex, whether a pivot is 0" },
}

--- What linalg.lu_factor gives.
function matrices.lu(A, pivot, get_infos)
  local o <const> = config.arguments("lu", LU, pivot, get_infos)
  if o.get_infos then return require "ltrain.linalg.checked".lu_factor_ex(A) end
  return lu.lu_factor(A)
end

--- X of A X = B, of the LU and pivots that linalg.lu_factor gives of A.
---@param B Tensor [B..., N, K]
function matrices.lu_solve(B, LU_data, LU_pivots)
  local X <const> = lu.lu_solve(LU_data, LU_pivots, B)
  return X
end

local UNPACK <const> = config.signature {
  { "unpack_data", type = "boolean", default = true, doc = "false: L and U are empty" },
  { "unpack_pivots", type = "boolean", default = true, doc = "false: P is empty" },
}

--- P, L and U, as linalg.lu has them, of the LU and pivots that linalg.lu_factor gives.
function matrices.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
  local o <const> = config.arguments("lu_unpack", UNPACK, unpack_data, unpack_pivots)
  local P, L, U = lu.unpacked(batched_matrices.check(LU_data, "lu_unpack"), LU_pivots)
  local none <const> = c.zeros({ 0 }, { dtype = P.dtype, device = P.device })
  if not o.unpack_data then L, U = none, none end
  return o.unpack_pivots and P or none, L, U
end

--- The QR factors of A [B..., M, N] as LAPACK keeps them: R on and above the diagonal, below it
--- Householder's vectors, and tau [B..., K].
function matrices.geqrf(A)
  return householder.geqrf(A, "geqrf")
end

--- linalg.householder_product.
function matrices.orgqr(A, tau)
  local Q <const> = householder.householder_product(A, tau)
  return Q
end

local ORMQR <const> = config.signature {
  { "left", type = "boolean", default = true, doc = "false: X Q" },
  { "transpose", type = "boolean", default = false, doc = "of Q^T in place of Q" },
}

--- Q X, of the square Q [B..., M, M] that geqrf's A and tau describe.
---@param A Tensor [B..., M, N]
---@param tau Tensor [B..., K]
---@param other Tensor X [B..., M, L]
function matrices.ormqr(A, tau, other, left, transpose)
  local o <const> = config.arguments("ormqr", ORMQR, left, transpose)
  local Y <const> = householder.product(A, tau, other, o.left, o.transpose, "ormqr")
  return Y
end

local SVD_LOWRANK <const> = config.signature {
  { "q", type = "integer", default = 6, min = 0, doc = "somewhat more than the rank" },
  { "niter", type = "integer", default = 2, min = 0, doc = "how often the basis is improved" },
  { "M", type = "tensor", doc = "of A - M in place of A" },
}

-- Orthonormal columns [B..., M, q] that A's columns are near to: Halko et al. 2009, algorithm 4.4.
local function basis(A, o)
  local n <const> = A.shape[A.ndim]
  local function orthonormal(x) return (c.linalg.qr(x, { complete = false })) end
  local Q = orthonormal(A:matmul(c.randn({ n, o.q }, { dtype = A.dtype, device = A.device })))
  for _ = 1, o.niter do Q = orthonormal(A:matmul(orthonormal(turned(A):matmul(Q)))) end
  return Q
end

--- U [B..., M, q], S [B..., q] and V [B..., N, q] with A near U diag(S) V^T, by a random basis: for
--- matrices of low rank (Halko et al. 2009, algorithm 5.1).
---@param A Tensor [B..., M, N]
function matrices.svd_lowrank(A, q, niter, M)
  local o <const> = config.arguments("svd_lowrank", SVD_LOWRANK, q, niter, M)
  batched_matrices.check(A, "svd_lowrank")
  if o.M then A = A - o.M end
  local is_wide <const> = A.shape[A.ndim - 1] < A.shape[A.ndim]
  if is_wide then A = turned(A) end
  local Q <const> = basis(A, o)
  local U, S <const>, Vh <const> = batched_matrices.svd(turned(Q):matmul(A), "svd_lowrank")
  U = Q:matmul(U)
  if is_wide then return turned(Vh), S, U end
  return U, S, turned(Vh)
end

local PCA_LOWRANK <const> = config.signature {
  { "q", type = "integer", min = 0, doc = "how many components; by default min(6, M, N)" },
  { "center", type = "boolean", default = true, doc = "the mean of the rows is subtracted" },
  { "niter", type = "integer", default = 2, min = 0, doc = "how often the basis is improved" },
}

--- The principal components of M samples of N features: svd_lowrank of A less the mean of its rows.
---@param A Tensor [B..., M, N]
function matrices.pca_lowrank(A, q, center, niter)
  local o <const> = config.arguments("pca_lowrank", PCA_LOWRANK, q, center, niter)
  batched_matrices.check(A, "pca_lowrank")
  local most <const> = math.min(A.shape[A.ndim - 1], A.shape[A.ndim])
  local count <const> = o.q or math.min(6, most)
  if count > most then
    errors.blame("pca_lowrank: q = %d components of matrices %s", count, errors.show_shape(A))
  end
  if o.center then A = A - A:mean({ -2 }, true) end
  return matrices.svd_lowrank(A, count, o.niter)
end

return matrices
