-- stdlib/linalg/exponential.lua: the exponential of matrices.
--
-- Scaling and squaring with a Taylor series (C. Moler, C. Van Loan, Nineteen Dubious Ways to
-- Compute the Exponential of a Matrix, 1978, their method 3).

local batched_matrices = require "ltrain.linalg.batched_matrices"

local exponential = {}

local TERMS <const> = 12 -- of the Taylor series: beyond 1/4 what is left is below 1e-17
local MOST <const> = 0.25 -- the norm at which it is taken

-- How often x is halved so that its largest 1-norm is at most MOST.
local function halvings(x)
  if x:numel() == 0 then return 0 end
  local norm <const> = x:detach():abs():sum(-2):amax():item()
  if norm ~= norm or norm == math.huge or norm <= MOST then return 0 end
  return math.ceil(math.log(norm / MOST, 2))
end

--- The matrix exponential of A [B..., N, N], by scaling and squaring of a Taylor series (Higham:
--- Functions of matrices, 2008, 10.3).
function exponential.matrix_exp(A)
  batched_matrices.square(A, "linalg.matrix_exp")
  local s <const> = halvings(A)
  local x <const>, eye <const> = A * 2.0 ^ -s, batched_matrices.eye(A)
  local y = eye:expand(A.shape)
  for k = TERMS, 1, -1 do y = x:matmul(y) / k + eye end
  for _ = 1, s do y = y:matmul(y) end
  return y
end

return exponential
