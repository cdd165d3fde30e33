-- stdlib/linalg/pseudoinverses.lua: pseudoinverses, ranks, condition numbers and least squares, by
-- the singular value decomposition.
--
-- G. Golub, C. Van Loan, Matrix Computations, 4th edition, 2013, section 5.5.

local Function = require "ltrain.autograd.Function"
local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local norms = require "ltrain.linalg.norms"

local operation <const> = c.runtime.operation

local pseudoinverses = {}

local EPS <const> = { f32 = 2 ^ -23, f64 = 2 ^ -52 }

-- As a number or a tensor for each matrix, to compare with values [B..., K].
local function beside(tolerance)
  return c.is_tensor(tolerance) and tolerance:unsqueeze(-1) or tolerance
end

-- Singular values above this count, the largest of each matrix is `most` [B..., 1].
local function limit_of(A, most, o)
  local m, n = A.shape[A.ndim - 1], A.shape[A.ndim]
  local rtol = beside(o.rtol)
  if not rtol then rtol = o.atol and 0 or EPS[A.dtype] * math.max(m, n) end
  local limit = most * rtol
  if o.atol then limit = limit:maximum(beside(o.atol)) end
  return limit
end

local function largest(S)
  if S.shape[S.ndim] == 0 then return S:sum(-1, true) end
  return S:amax(-1, true)
end

local TOLERANCE <const> = {
  atol = { type = "number|tensor", doc = "singular values up to atol count as 0" },
  rtol = { type = "number|tensor",
    doc = "singular values up to rtol times the largest count as 0; by default max(M, N) times "
      .. "the dtype's epsilon" },
  hermitian = { type = "boolean", default = false,
    doc = "A is symmetric: its eigenvalues are used, which is faster" },
}

local function by_values(A, o, where)
  local U, S, Vh, size
  if o.hermitian then
    S, U = operation("linalg_eigh", where)(A)
    Vh, size = U:transpose(-2, -1), S:abs()
  else
    U, S, Vh = batched_matrices.svd(A, where)
    size = S
  end
  local keeps = size:gt(limit_of(A, largest(size), o))
  local inverse = c.where(keeps, S, c.ones_like(S)):reciprocal():masked_fill(~keeps, 0)
  return (Vh:transpose(-2, -1) * inverse:unsqueeze(-2)):matmul(U:transpose(-2, -1))
end

-- The derivative where the rank stays (Golub and Pereyra 1973): that by way of the singular vectors
-- is infinite where singular values are equal or 0.
local function pinv_derivative(ctx, grad)
  local A, X = ctx:saved_tensors()
  local G, Xt = grad:transpose(-2, -1), X:transpose(-2, -1)
  local GX, XG = G:matmul(X), X:matmul(G)
  local GXXt, XtXG = GX:matmul(Xt), Xt:matmul(XG)
  return GXXt - A:matmul(X:matmul(GXXt)) + XtXG - XtXG:matmul(X):matmul(A)
    - X:matmul(GX):transpose(-2, -1)
end

local pseudoinverse <const> = Function {
  name = "linalg.pinv",
  forward = function(ctx, A, o, where)
    local X = by_values(A, o, where)
    ctx:save_for_backward(A, X)
    return X
  end,
  backward = pinv_derivative,
}

--- The pseudoinverse [B..., N, M] of A [B..., M, N].
function pseudoinverses.pinv(A, options)
  local where <const> = "linalg.pinv"
  local o = config.check(options, TOLERANCE, where)
  local X = pseudoinverse(batched_matrices.check(A, where), o, where)
  return X
end

--- The number of nonzero singular values of each matrix [B..., M, N].
function pseudoinverses.matrix_rank(A, options)
  local where <const> = "linalg.matrix_rank"
  local o = config.check(options, TOLERANCE, where)
  batched_matrices.check(A, where)
  local _ <close> = c.no_grad()
  local S
  if o.hermitian then
    S = (operation("linalg_eigh", where)(A)):abs()
  else
    S = select(2, batched_matrices.svd(A, where))
  end
  return S:gt(limit_of(A, largest(S), o)):sum(-1)
end

--- The condition number of each matrix in the norm `p` (2; see matrix_norm): the norm times that of
--- the inverse; infinite for a singular matrix. For p = 2, -2 and "nuc" it is computed from
--- singular values, of which rounding may leave the smallest above 0.
function pseudoinverses.cond(A, p)
  local where <const> = "linalg.cond"
  batched_matrices.check(A, where)
  if p == nil or p == 2 or p == -2 then
    local _, S = batched_matrices.svd(A, where)
    local first, last = S:select(-1, 1), S:select(-1, -1)
    return p == -2 and last / first or first / last
  end
  batched_matrices.square(A, where)
  if p == "nuc" then
    local _, S = batched_matrices.svd(A, where)
    return S:sum(-1) * S:reciprocal():sum(-1)
  end
  local sign = operation("linalg_slogdet", where)(A:detach())
  local is_singular <const> = sign:eq(0)
  local X = c.where(is_singular:unsqueeze(-1):unsqueeze(-1), batched_matrices.eye(A), A)
  local y = norms.matrix_norm(A, p) * norms.matrix_norm(batched_matrices.inverse(X, where), p)
  return y:masked_fill(is_singular, math.huge)
end

local LEAST <const> = {
  rcond = { type = "number",
    doc = "singular values up to rcond times the largest count as 0; by default max(M, N) times "
      .. "the dtype's epsilon" },
}

-- The squares of what is left, where A has more rows than columns and all of these count.
local function residuals(A, B, X, rank)
  local n = A.shape[A.ndim]
  if A.shape[A.ndim - 1] <= n or not rank:eq(n):all():item() then
    return c.zeros({ 0 }, { dtype = A.dtype, device = A.device })
  end
  return (A:matmul(X) - B):square():sum(-2)
end

--- The least-squares solution X that minimizes |A X - B| (of several the one with the smallest
--- norm), the squared residuals (empty unless A [B..., M, N] has M > N and rank N), the rank and
--- the singular values of A. B is [B..., M, K]. Uses singular values, as LAPACK's gelsd.
function pseudoinverses.lstsq(A, B, options)
  local where <const> = "linalg.lstsq"
  local o = config.check(options, LEAST, where)
  batched_matrices.check(A, where)
  batched_matrices.check(B, where)
  if A.shape[A.ndim - 1] ~= B.shape[B.ndim - 1] then
    errors.blame("%s: %s and %s have not as many rows", where, errors.show_shape(A),
      errors.show_shape(B))
  end
  local X = pseudoinverse(A, { rtol = o.rcond }, where):matmul(B)
  local _, S = batched_matrices.svd(A:detach(), where)
  local rank = S:gt(limit_of(A, largest(S), { rtol = o.rcond })):sum(-1)
  return X, residuals(A, B, X, rank), rank, S
end

return pseudoinverses
