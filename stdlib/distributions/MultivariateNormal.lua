-- stdlib/distributions/MultivariateNormal.lua: the multivariate normal distribution. B batch, D
-- dims of a vector.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local constraints = require "ltrain.distributions.constraints"
local errors = require "ltrain.core.errors"

local MultivariateNormal = Distribution:extend("MultivariateNormal")

MultivariateNormal.__arguments = "loc | covariance_matrix precision_matrix scale_tril"
  .. " validate_args"

MultivariateNormal.arg_constraints = { loc = constraints.real,
  covariance_matrix = constraints.covariance, scale_tril = constraints.lower_cholesky }

local OPTIONS <const> = {
  covariance_matrix = { type = "tensor", doc = "[B..., D, D], positive definite" },
  scale_tril = { type = "tensor", doc = "instead: its lower Cholesky factor" },
  validate_args = { type = "boolean", doc = "whether parameters and values are checked (true)" },
}

-- The lower Cholesky factor, column by column, of both triangles: its gradient is symmetric.
local function cholesky(matrix)
  matrix = (matrix + matrix:transpose(-2, -1)) * 0.5
  local n, columns = matrix.shape[matrix.ndim], {}
  for j = 1, n do
    local column = matrix:select(-1, j)
    for k = 1, j - 1 do
      column = column - columns[k] * columns[k]:select(-1, j):unsqueeze(-1)
    end
    local below = c.arange(n, { device = matrix.device }):ge(j - 1)
    column = column / column:select(-1, j):unsqueeze(-1):sqrt()
    columns[j] = c.where(below, column, c.zeros_like(column))
  end
  return c.stack(columns, -1)
end

-- x with factor @ x = y, by forward substitution.
local function solve(factor, y)
  local parts = {}
  for i = 1, y.shape[y.ndim] do
    local row, rest = factor:select(-2, i), y:select(-1, i)
    for k = 1, i - 1 do rest = rest - row:select(-1, k) * parts[k] end
    parts[i] = rest / row:select(-1, i)
  end
  return c.stack(parts, -1)
end

local function diagonal_log_sum(factor)
  local sum = 0
  for i = 1, factor.shape[factor.ndim] do sum = sum + factor:select(-2, i):select(-1, i):log() end
  return sum
end

--- MultivariateNormal(loc, {covariance_matrix = m}), MultivariateNormal{loc = x, ...}
---@param loc Tensor [B..., D]
function MultivariateNormal:init(loc, options)
  local where = "distributions.MultivariateNormal"
  local o = config.check(options, OPTIONS, where)
  config.argument(loc, "tensor", where, "loc")
  if (o.covariance_matrix == nil) == (o.scale_tril == nil) then
    errors.blame("%s: either covariance_matrix or scale_tril is needed", where)
  end
  self.scale_tril = o.scale_tril or cholesky(o.covariance_matrix)
  local d, tril = loc.shape[loc.ndim], self.scale_tril
  if tril.ndim < 2 or tril.shape[tril.ndim] ~= d or tril.shape[tril.ndim - 1] ~= d then
    errors.blame("%s: loc is %s, the matrix %s", where, errors.show_shape(loc),
      errors.show_shape(tril))
  end
  self:_set_options { validate_args = o.validate_args }
  self:_validate_parameter("loc", loc)
  local name = o.scale_tril and "scale_tril" or "covariance_matrix"
  self:_validate_parameter(name, o[name])
  self.loc = loc + tril:select(-1, 1) * 0
  self.scale_tril = tril + (self.loc * 0):unsqueeze(-1)
  self.batch_shape = table.move(self.loc.shape, 1, self.loc.ndim - 1, 1, {})
  self.event_shape = { d }
  self.options = { dtype = self.loc.dtype, device = self.loc.device }
  self.mean, self.mode, self.variance = self.loc, self.loc, self.scale_tril:square():sum(-1)
end

function MultivariateNormal:rsample(sample_shape)
  local z = c.randn(self:shape_of(sample_shape), self.options)
  return self.loc + self.scale_tril:matmul(z:unsqueeze(-1)):squeeze(-1)
end

function MultivariateNormal:log_prob(value)
  value = self:validate_sample(value)
  local z = solve(self.scale_tril, value - self.loc)
  local d = self.event_shape[1]
  return z:square():sum(-1) * -0.5 - diagonal_log_sum(self.scale_tril)
    - 0.5 * d * math.log(2 * math.pi)
end

function MultivariateNormal:entropy()
  local d = self.event_shape[1]
  return diagonal_log_sum(self.scale_tril) + self.loc:select(-1, 1) * 0
    + 0.5 * d * (1 + math.log(2 * math.pi))
end

function MultivariateNormal:_kl(q)
  local d, spread = self.event_shape[1], 0
  for j = 1, d do
    spread = spread + solve(q.scale_tril, self.scale_tril:select(-1, j)):square():sum(-1)
  end
  local shift = solve(q.scale_tril, q.loc - self.loc):square():sum(-1)
  return diagonal_log_sum(q.scale_tril) - diagonal_log_sum(self.scale_tril)
    + (spread + shift - d) * 0.5
end

return MultivariateNormal
