-- stdlib/linalg/lu.lua: lU factorization with partial pivoting. M rows, N columns, K the smaller of
-- them.
--
-- The elimination runs on values only and determines the order of the rows. The factors of the rows
-- in that order have a closed-form derivative for the square part; the rest follows from triangular
-- systems.

local Function = require "ltrain.autograd.Function"
local batched_matrices = require "ltrain.linalg.batched_matrices"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local solvers = require "ltrain.linalg.solvers"

local lu = {}

local function turned(x) return x:transpose(-2, -1) end

-- One column of the elimination: x [B, M, N] with the row of the largest |x| brought up to k, what
-- follows reduced; the pivots of the column [B, 1], from 0, and the rows' order [B, M].
local function eliminate(x, k, order)
  local m <const>, n <const> = x.shape[2], x.shape[3]
  local pivot <const> = x:narrow(2, k, m - k + 1):select(3, k):abs():argmax(2, true) + (k - 1)
  local rows = c.arange(m, { device = x.device }):expand(x.shape[1], m)
  rows = rows:scatter(2, pivot, rows:narrow(2, k, 1)):contiguous()
  rows:narrow(2, k, 1):copy_(pivot)
  order = order:gather(2, rows)
  x = x:gather(2, rows:unsqueeze(3):expand(x.shape[1], m, n))
  if k < m then
    local top <const> = x:narrow(2, k, 1)
    local divisor <const> = top:narrow(3, k, 1)
    local below <const> = x:narrow(2, k + 1, m - k)
    local factor <const> = below:narrow(3, k, 1) / divisor:masked_fill(divisor:eq(0), 1)
    if k < n then
      below:narrow(3, k + 1, n - k):sub_(factor * top:narrow(3, k + 1, n - k))
    end
    below:narrow(3, k, 1):copy_(factor)
  end
  return x, pivot, order
end

-- The packed factors, pivots from 0 [B, K] and the order of rows [B, M] of x [B, M, N].
local function factored(x)
  local m <const>, k <const> = x.shape[2], math.min(x.shape[2], x.shape[3])
  local order = c.arange(m, { device = x.device }):expand(x.shape[1], m)
  local pivots = {}
  x = x:clone { contiguous = true }
  for column = 1, k do x, pivots[column], order = eliminate(x, column, order) end
  local list <const> = k > 0 and c.cat(pivots, 2)
    or c.zeros({ x.shape[1], 0 }, { dtype = "i64", device = x.device })
  return x, list, order
end

-- The packed factors of square matrices in the order of their pivots.
local square
square = Function {
  name = "linalg.lu",
  forward = function(ctx, x, packed)
    ctx:save_for_backward(x, packed)
    return packed:clone()
  end,
  backward = function(ctx, grad)
    local packed <const> = square(ctx:saved_tensors()) -- a function of x again
    local L <const>, U <const> = packed:tril(-1) + batched_matrices.eye(packed), packed:triu()
    local inner <const> = turned(L):matmul(grad:tril(-1)):tril(-1) + grad:triu():matmul(turned(U))
      :triu()
    local left <const> = solvers.solve_triangular(turned(L), inner,
      { upper = true, unitriangular = true })
    return solvers.solve_triangular(turned(U), left, { upper = false, left = false })
  end,
}

-- The packed factors [B, M, N] of x, whose rows are in the order of the pivots, with derivatives.
local function differentiable(x, packed)
  local m <const>, n <const> = x.shape[2], x.shape[3]
  local k <const> = math.min(m, n)
  local own <const> = square(x:narrow(2, 1, k):narrow(3, 1, k),
    packed:narrow(2, 1, k):narrow(3, 1, k):contiguous())
  if n > k then
    local right <const> = solvers.solve_triangular(own, x:narrow(3, k + 1, n - k),
      { upper = false, unitriangular = true })
    return c.cat({ own, right }, 3)
  elseif m > k then
    local below <const> = solvers.solve_triangular(own, x:narrow(2, k + 1, m - k),
      { upper = true, left = false })
    return c.cat({ own, below }, 2)
  end
  return own
end

-- The packed factors of A, the pivots and the order of rows, all in A's batch.
local function factors_of(A, where)
  batched_matrices.check(A, where)
  local m <const>, n <const> = A.shape[A.ndim - 1], A.shape[A.ndim]
  local lead <const> = { table.unpack(A.shape, 1, A.ndim - 2) }
  local count = 1
  for _, size in ipairs(lead) do count = count * size end
  local x <const> = A:reshape { count, m, n }
  local packed, pivots, order
  do
    local _ <close> = c.no_grad()
    packed, pivots, order = factored(x:detach())
  end
  if A.requires_grad and x:numel() > 0 then
    packed = differentiable(x:gather(2, order:unsqueeze(3):expand(count, m, n)), packed)
  end
  local function shaped(y, ...)
    local shape = table.move(lead, 1, #lead, 1, {})
    for _, size in ipairs { ... } do shape[#shape + 1] = size end
    return y:reshape(shape)
  end
  return shaped(packed, m, n), shaped(pivots, math.min(m, n)), shaped(order, m)
end

local PIVOT <const> = {
  pivot = { type = "boolean", default = true, choices = { true },
    doc = "interchange rows; false is not supported" },
}

--- The factors of A [B..., M, N] in one matrix, U with L below its diagonal (whose own diagonal of
--- ones is omitted), and the pivots [B..., K], i32: row k was interchanged with row pivots[k], from
--- 1, as in LAPACK.
function lu.lu_factor(A, options)
  config.check(options, PIVOT, "linalg.lu_factor")
  local packed <const>, pivots <const> = factors_of(A, "linalg.lu_factor")
  return packed, (pivots + 1):to "i32"
end

-- P of an order of rows, and the triangles L and U of packed factors.
local function parts(packed, order)
  local m <const>, n <const> = packed.shape[packed.ndim - 1], packed.shape[packed.ndim]
  local k <const> = math.min(m, n)
  local shape <const> = order.shape
  shape[#shape + 1] = m
  local P <const> = batched_matrices.eye(packed, m):index_select(1, order:reshape { -1 })
    :reshape(shape)
  local ones <const> = c.eye(m, k, { dtype = packed.dtype, device = packed.device })
  return turned(P), packed:narrow(-1, 1, k):tril(-1) + ones, packed:narrow(-2, 1, k):triu()
end

--- P [B..., M, M], L [B..., M, K] and U [B..., K, N] with A = P L U: P is a permutation, L is lower
--- triangular with ones on its diagonal, U is upper triangular.
function lu.lu(A, options)
  config.check(options, PIVOT, "linalg.lu")
  local packed <const>, _, order <const> = factors_of(A, "linalg.lu")
  return parts(packed, order)
end

-- The order of rows [B..., M] that interchanges by pivots [B..., K], from 1, make.
local function order_of(pivots, m)
  local shape <const>, n <const> = pivots.shape, pivots.shape[pivots.ndim]
  shape[#shape] = m
  local order = c.arange(m, { device = pivots.device }):expand(shape)
  local at <const> = pivots:to "i64" - 1
  for k = 1, n do
    local pivot <const> = at:narrow(-1, k, 1)
    local lower <const> = order:gather(-1, pivot)
    order = order:scatter(-1, pivot, order:narrow(-1, k, 1)):contiguous()
    order:narrow(-1, k, 1):copy_(lower)
  end
  return order
end

--- P, L and U of what lu_factor gives.
function lu.unpacked(LU, pivots)
  return parts(LU, order_of(pivots, LU.shape[LU.ndim - 1]))
end

local SOLVE <const> = {
  left = { type = "boolean", default = true, doc = "false: solve X A = B" },
  adjoint = { type = "boolean", default = false, doc = "true: solve with A^T instead of A" },
}

-- Rows of B in an order [B..., N], or, `back`, from it to where they were.
local function arranged(B, order, back)
  local shape <const> = B.shape
  if back then order = order:argsort(-1) end
  for k = 1, B.ndim - order.ndim - 1 do order = order:unsqueeze(k) end
  return B:gather(-2, order:unsqueeze(-1):expand(shape))
end

--- Solves A X = B for X, from the result of lu_factor for A [B..., N, N], with B [B..., N, K].
--- Batch dims broadcast.
function lu.lu_solve(LU, pivots, B, options)
  local where <const> = "linalg.lu_solve"
  local o <const> = config.check(options, SOLVE, where)
  batched_matrices.square(LU, where)
  batched_matrices.check(B, where)
  if not c.is_tensor(pivots) or pivots.ndim ~= LU.ndim - 1 then
    errors.blame("%s: pivots must be [.., N] of LU %s: got %s", where, errors.show_shape(LU),
      errors.show(pivots))
  end
  local rows <const> = not o.left and turned(B) or B
  local A <const>, right <const> = batched_matrices.broadcast(LU, rows, where)
  local order <const> = order_of(pivots, LU.shape[LU.ndim])
  local LOWER <const> = { upper = false, unitriangular = true }
  local X
  if o.adjoint == o.left then -- A^T X = right
    local y <const> = solvers.solve_triangular(turned(A), right, { upper = false })
    X = solvers.solve_triangular(turned(A), y, { upper = true, unitriangular = true })
    X = arranged(X, order, true)
  else
    local y <const> = solvers.solve_triangular(A, arranged(right, order), LOWER)
    X = solvers.solve_triangular(A, y, { upper = true })
  end
  return o.left and X or turned(X)
end

return lu
