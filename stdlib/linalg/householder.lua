-- stdlib/linalg/householder.lua: products of Householder's reflections I - tau v v^T, which LAPACK
-- keeps below the diagonal of a matrix: v is 0 above it and 1 on it.
-- M rows, N columns, K reflections.
--
-- A. Householder, 1958; G. Golub, C. Van Loan, Matrix Computations, 4th edition, 2013, section 5.1.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local householder = {}

-- The vector of reflection k, [B..., M, 1].
local function vector(A, k)
  local below <const> = A:narrow(-1, k, 1):tril(-k)
  return below + batched_matrices.eye(A, A.shape[A.ndim - 1]):narrow(2, k, 1)
end

local function check(A, tau, where)
  batched_matrices.check(A, where)
  batched_matrices.check(tau, where, 1)
  local k <const> = tau.shape[tau.ndim]
  if tau.ndim ~= A.ndim - 1 or k > A.shape[A.ndim] or k > A.shape[A.ndim - 1] then
    errors.blame("%s: needs A [.., M, N] and tau [.., K] with K at most M and N: got %s and %s",
      where, errors.show_shape(A), errors.show_shape(tau))
  end
  return k
end

--- X with the reflections 1..K from the left, the last one first; `back`: the first one first.
function householder.apply(A, tau, X, back)
  local count <const> = tau.shape[tau.ndim]
  for step = 1, count do
    local k <const> = back and step or count + 1 - step
    local v <const> = vector(A, k)
    X = X - v * tau:narrow(-1, k, 1):unsqueeze(-1) * v:transpose(-2, -1):matmul(X)
  end
  return X
end

--- The first N columns of the product of the K reflections that A [B..., M, N] and tau [B..., K]
--- describe, as geqrf gives them: the Q of its QR factors.
function householder.householder_product(A, tau)
  local where <const> = "linalg.householder_product"
  check(A, tau, where)
  local m <const>, n <const> = A.shape[A.ndim - 1], A.shape[A.ndim]
  if m < n then
    errors.blame("%s: needs as many rows as columns at least, got %s", where, errors.show_shape(A))
  end
  local eye <const> = batched_matrices.eye(A, m):narrow(2, 1, n)
  local Q <const> = householder.apply(A, tau, eye:expand(A.shape))
  return Q
end

--- That product Q, all of it [M, M], times `other`: Q X; `left` = false: X Q; with `transpose` of
--- Q^T.
function householder.product(A, tau, other, left, transpose, where)
  check(A, tau, where)
  batched_matrices.check(other, where)
  if other.shape[left and other.ndim - 1 or other.ndim] ~= A.shape[A.ndim - 1] then
    errors.blame("%s: %s does not fit %s reflections of %s", where, errors.show_shape(other),
      left and "left" or "right", errors.show_shape(A))
  end
  if left then return householder.apply(A, tau, other, transpose) end
  local turned <const> = other:transpose(-2, -1)
  return householder.apply(A, tau, turned, not transpose):transpose(-2, -1)
end

--- The factors of A [B..., M, N] as reflections: R on and above the diagonal with the vectors below
--- it, and tau [B..., K].
function householder.geqrf(A, where)
  batched_matrices.check(A, where)
  local m <const>, k <const> = A.shape[A.ndim - 1], math.min(A.shape[A.ndim - 1], A.shape[A.ndim])
  local taus = {}
  for column = 1, k do
    local x <const> = A:narrow(-1, column, 1)
    local alpha <const> = x:narrow(-2, column, 1)
    local rest <const> = x:narrow(-2, column + 1, m - column):square():sum({ -2 }, true)
    local is_done <const> = rest:eq(0) -- nothing to reflect away
    local size <const> = (alpha:square() + rest):sqrt()
    local beta <const> = c.where(alpha:gt(0), -size, size)
    local tau <const> = ((beta - alpha) / beta):masked_fill(is_done, 0)
    local scale <const> = (1 / (alpha - beta)):masked_fill(is_done, 0)
    local stored <const> = x:tril(-column) * scale
    local v <const> = stored + batched_matrices.eye(A, m):narrow(2, column, 1)
    local reflected <const> = A - v * tau * v:transpose(-2, -1):matmul(A)
    local own <const> = stored + reflected:narrow(-1, column, 1):triu(-column + 1)
    local list = { own }
    if column > 1 then table.insert(list, 1, A:narrow(-1, 1, column - 1)) end
    if column < A.shape[A.ndim] then
      list[#list + 1] = reflected:narrow(-1, column + 1, A.shape[A.ndim] - column)
    end
    taus[column], A = tau:squeeze(-1), c.cat(list, A.ndim)
  end
  if k == 0 then
    local shape = A.shape
    shape[#shape] = nil
    shape[#shape] = 0
    return A:clone(), c.zeros(shape, { dtype = A.dtype, device = A.device })
  end
  return A, c.cat(taus, A.ndim - 1)
end

return householder
