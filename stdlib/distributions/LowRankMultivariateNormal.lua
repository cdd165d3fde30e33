-- stdlib/distributions/LowRankMultivariateNormal.lua: the multivariate normal distribution with
-- covariance W W^T + diagonal. B batch, D dims of a vector, R rank: only R by R matrices are
-- factored (Woodbury identity).

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local constraints = require "ltrain.distributions.constraints"
local errors = require "ltrain.core.errors"
local linalg = require "ltrain.linalg"

local LowRankMultivariateNormal = Distribution:extend("LowRankMultivariateNormal")

LowRankMultivariateNormal.__arguments = "loc cov_factor cov_diag | validate_args"

LowRankMultivariateNormal.arg_constraints = { loc = constraints.real, cov_factor = constraints.real,
  cov_diag = constraints.positive }

--- LowRankMultivariateNormal(loc, cov_factor, cov_diag, options)
---@param loc Tensor [B..., D]
---@param cov_factor Tensor [B..., D, R]
---@param cov_diag Tensor [B..., D]
function LowRankMultivariateNormal:init(loc, cov_factor, cov_diag, options)
  local where <const> = "distributions.LowRankMultivariateNormal"
  local mean = config.argument(loc, "tensor", where, "loc")
  local factor = config.argument(cov_factor, "tensor", where, "cov_factor")
  local diagonal = config.argument(cov_diag, "tensor", where, "cov_diag")
  local d = mean.shape[mean.ndim]
  if mean.ndim < 1 or diagonal.ndim < 1 or factor.ndim < 2 or diagonal.shape[diagonal.ndim] ~= d
    or factor.shape[factor.ndim - 1] ~= d then
    errors.blame("%s: loc [B..., D], cov_factor [B..., D, R] and cov_diag [B..., D] do not fit: "
      .. "%s, %s, %s", where, errors.show_shape(mean), errors.show_shape(factor),
      errors.show_shape(diagonal))
  end
  self:set_vector({ "loc", "cov_diag" }, { mean + factor:select(-1, 1) * 0, diagonal }, options)
  self:_validate_parameter("cov_factor", factor)
  self.cov_factor = factor + (self.loc * 0):unsqueeze(-1)
  self.mean, self.mode = self.loc, self.loc
  self.variance = self.cov_factor:square():sum(-1) + self.cov_diag
end

function LowRankMultivariateNormal:rsample(sample_shape)
  local shape = self:shape_of(sample_shape)
  local narrow = { table.unpack(shape) }
  narrow[#narrow] = self.cov_factor.shape[self.cov_factor.ndim]
  local along, apart = c.randn(narrow, self.options), c.randn(shape, self.options)
  return self.loc + self.cov_factor:matmul(along:unsqueeze(-1)):squeeze(-1)
    + self.cov_diag:sqrt() * apart
end

-- W^T diagonal^-1, and the Cholesky factor of I + W^T diagonal^-1 W.
local function capacitance(self)
  local scaled = self.cov_factor:transpose(-2, -1) / self.cov_diag:unsqueeze(-2)
  local r = self.cov_factor.shape[self.cov_factor.ndim]
  return scaled, linalg.cholesky(scaled:matmul(self.cov_factor) + c.eye(r, self.options))
end

local function log_determinant(self, tril)
  return 2 * tril:diagonal(0, -2, -1):log():sum(-1) + self.cov_diag:log():sum(-1)
end

function LowRankMultivariateNormal:log_prob(value)
  local shift = self:validate_sample(value) - self.loc
  local scaled, tril = capacitance(self)
  local along = scaled:matmul(shift:unsqueeze(-1))
  local lead = table.move(along.shape, 1, along.ndim - 2, 1, {})
  local r = tril.shape[tril.ndim]
  lead[#lead + 1], lead[#lead + 2] = r, r
  local z = linalg.solve_triangular(tril:expand(lead), along, { upper = false })
  local distance = (shift:square() / self.cov_diag):sum(-1) - z:squeeze(-1):square():sum(-1)
  return -0.5 * (distance + log_determinant(self, tril)
    + self.event_shape[1] * math.log(2 * math.pi))
end

function LowRankMultivariateNormal:entropy()
  local _, tril = capacitance(self)
  return 0.5 * (log_determinant(self, tril) + self.event_shape[1] * (1 + math.log(2 * math.pi)))
end

return LowRankMultivariateNormal
