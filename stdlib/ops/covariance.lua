-- stdlib/ops/covariance.lua: lt.cov and lt.corrcoef: covariances and correlations of variables. V
-- variables, N observations.

local arguments = require "ltrain.ops.arguments"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local covariance = {}

local COV <const> = config.signature {
  { "correction", type = "integer", default = 1, doc = "sums are divided by N minus this" },
  { "fweights", type = "tensor", doc = "[N]: frequency weights of the observations" },
  { "aweights", type = "tensor", doc = "[N]: weights of the observations" },
}

-- The weights of the observations, nil: none, in the dtype of x.
local function weights_of(o, x)
  local w
  for _, name in ipairs { "fweights", "aweights" } do
    local given <const> = o[name]
    if given and (given.ndim ~= 1 or given.shape[1] ~= x.shape[2]) then
      errors.blame("cov: %s must be [%d]: got %s", name, x.shape[2], errors.show_shape(given))
    end
    if given then w = w and w * given:to(x.dtype) or given:to(x.dtype) end
  end
  return w
end

--- The covariance matrix of the variables in the rows of x.
---@param x Tensor [V, N] -> [V, V]; [N] or [1, N] -> []
function covariance.cov(x, correction, fweights, aweights)
  arguments.tensor(x, "cov", "x")
  local o <const> = config.arguments("cov", COV, correction, fweights, aweights)
  if x.ndim > 2 then errors.blame("cov: x must be [V, N]: got %s", errors.show_shape(x)) end
  local rows = x.ndim == 2 and x or x:reshape { 1, -1 }
  if not is_float(rows.dtype) then rows = rows:float() end
  local w <const> = weights_of(o, rows)
  local total <const> = w and w:sum() or rows.shape[2]
  local from_mean <const> = rows - (w and rows * w or rows):sum(2, true) / total
  local less = o.correction
  if o.aweights then less = less * (w * o.aweights:to(rows.dtype)):sum() / total end
  local divisor <const> = total - less
  local y <const> = (w and from_mean * w or from_mean):matmul(from_mean:t())
    / (w and divisor:relu() or math.max(divisor, 0))
  return rows.shape[1] > 1 and y or y:reshape {}
end

--- Pearson's correlation coefficients of the variables in the rows of x.
---@param x Tensor [V, N] -> [V, V]; [N] or [1, N] -> []
function covariance.corrcoef(x)
  local y <const> = covariance.cov(x)
  if y.ndim == 0 then return y / y end
  local deviation <const> = y:diagonal():sqrt()
  local r = y / deviation:unsqueeze(2) / deviation:unsqueeze(1)
  return r:clamp(-1, 1)
end

return covariance
