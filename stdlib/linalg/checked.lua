-- stdlib/linalg/checked.lua: cholesky_ex, inv_ex, lu_factor_ex and solve_ex: return a status for
-- each matrix instead of raising an error.
--
-- All matrices are tried at once. If that fails, each one alone: what fails is NaN and has its
-- reason as a number, 0 stands for success.

local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local factorizations = require "ltrain.linalg.factorizations"
local lu = require "ltrain.linalg.lu"
local solvers = require "ltrain.linalg.solvers"

local checked = {}

local CHECK <const> = { type = "boolean", default = false, doc = "raises what info reports" }

-- The shape of the batch of A.
local function lead_of(A) return { table.unpack(A.shape, 1, A.ndim - 2) } end

-- Matrices of x one by one.
local function each(x)
  local count = 1
  for _, size in ipairs(lead_of(x)) do count = count * size end
  return x:reshape { count, x.shape[x.ndim - 1], x.shape[x.ndim] }, count
end

-- fn(A) and info: where it fails, NaN and reason(A) of that matrix.
local function try(fn, reason, A, check_errors)
  local lead <const> = lead_of(A)
  local none <const> = c.zeros(lead, { dtype = "i32", device = A.device })
  if check_errors then return fn(A), none end
  local is_done <const>, y <const> = pcall(fn, A)
  if is_done then return y, none end
  local list <const>, count <const> = each(A)
  local made, info = {}, {}
  for k = 1, count do
    local ok, one = pcall(fn, list[k])
    made[k] = ok and one or list[k] * (0 / 0)
    info[k] = ok and 0 or reason(list[k]:detach())
  end
  return c.stack(made):reshape(A.shape),
    c.tensor(info, { dtype = "i32", device = A.device }):reshape(lead)
end

-- The order of the first leading minor that is not positive.
local function minor(A)
  for k = 1, A.shape[1] do
    if not pcall(c.linalg.cholesky, A:narrow(1, 1, k):narrow(2, 1, k)) then return k end
  end
  return A.shape[1]
end

-- The first zero on the diagonal of U [B..., M, N], i32; 0: none.
local function zero_pivot(U)
  local diagonal <const> = U:diagonal(0, -2, -1)
  local n <const> = diagonal.shape[diagonal.ndim]
  if n == 0 then return diagonal:sum(-1):to "i32" end
  local is_zero <const> = diagonal:eq(0)
  local first <const> = is_zero:to "i32":argmax(-1) + 1
  return first:masked_fill(~is_zero:any(-1), 0):to "i32"
end

local function singular(A)
  local k <const> = zero_pivot((lu.lu_factor(A))):item()
  return k > 0 and k or A.shape[1] -- rounding may leave the last pivot above 0
end

local CHOLESKY <const> = {
  upper = { type = "boolean", default = false, doc = "the upper factor U of A = U^T U instead" },
  check_errors = CHECK,
}

--- The factor that cholesky gives, and info [B...], i32: 0, or the order of the first leading minor
--- of a matrix that is not positive-definite, whose factor is NaN.
function checked.cholesky_ex(A, options)
  local where <const> = "linalg.cholesky_ex"
  local o <const> = config.check(options, CHOLESKY, where)
  local L <const>, info <const> = try(factorizations.cholesky, minor,
    batched_matrices.square(A, where), o.check_errors)
  return o.upper and L:transpose(-2, -1) or L, info
end

local INVERSE <const> = { check_errors = CHECK }

--- The inverse, and info [B...], i32: 0, or which pivot of a singular matrix is 0.
function checked.inv_ex(A, options)
  local where <const> = "linalg.inv_ex"
  local o <const> = config.check(options, INVERSE, where)
  return try(solvers.inv, singular, batched_matrices.square(A, where), o.check_errors)
end

local SOLVE <const> = {
  left = { type = "boolean", default = true, doc = "false: X of X A = B" }, check_errors = CHECK,
}

--- The X that solve gives, and info as inv_ex has it, [B...] of A; of batches that broadcast, if a
--- matrix is singular, all of X is NaN.
function checked.solve_ex(A, B, options)
  local where <const> = "linalg.solve_ex"
  local o <const> = config.check(options, SOLVE, where)
  batched_matrices.square(A, where)
  batched_matrices.check(B, where, 1)
  local given <const> = { left = o.left }
  local _, info <const> = try(solvers.inv, singular, A:detach(), o.check_errors)
  local is_done <const>, X <const> = pcall(solvers.solve, A, B, given)
  if is_done then return X, info end
  return solvers.solve(A + batched_matrices.eye(A) * (0 / 0), B, given), info
end

local FACTOR <const> = {
  pivot = { type = "boolean", default = true, choices = { true },
    doc = "rows are interchanged; without it there is no factorization here" },
  check_errors = CHECK,
}

--- What lu_factor gives, and info [B...], i32: 0, or which pivot is 0.
function checked.lu_factor_ex(A, options)
  local where <const> = "linalg.lu_factor_ex"
  local o <const> = config.check(options, FACTOR, where)
  local LU <const>, pivots <const> = lu.lu_factor(batched_matrices.check(A, where))
  local info <const> = zero_pivot(LU:detach())
  if o.check_errors and info:ne(0):any():item() then
    errors.blame("%s: a pivot is 0: info is %s", where, tostring(info))
  end
  return LU, pivots, info
end

return checked
