-- stdlib/distributions/StudentT.lua: Student's t-distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local standard_gamma = require "ltrain.distributions.standard_gamma"

local StudentT = Distribution:extend("StudentT")

StudentT.__arguments = "df loc scale | validate_args"

StudentT.arg_constraints = { df = constraints.positive, loc = constraints.real,
  scale = constraints.positive }

--- StudentT(df, loc, scale, options): loc is 0 and scale is 1 by default
function StudentT:init(df, loc, scale, options)
  self:set_parameters({ "df", "loc", "scale" }, { df, loc, scale }, options,
    { loc = 0.0, scale = 1.0 })
  self.mean, self.mode = self.loc:masked_fill(self.df:le(1), 0 / 0), self.loc
end

function StudentT:_variance()
  local df = self.df
  local finite = self.scale:square() * df / (df - 2)
  return finite:masked_fill(df:le(2), math.huge):masked_fill(df:le(1), 0 / 0)
end

function StudentT:rsample(sample_shape)
  local shape = self:shape_of(sample_shape)
  local half = self.df:expand(shape) / 2
  local z, spread = c.randn(shape, self.options), (half / standard_gamma.sample(half)):sqrt()
  return self.loc + self.scale * z * spread
end

function StudentT:log_prob(value)
  local df, z = self.df, (self:validate_sample(value) - self.loc) / self.scale
  return ((df + 1) / 2):lgamma() - (df / 2):lgamma() - self.scale:log()
    - (df * math.pi):log() / 2 - (df + 1) / 2 * (z:square() / df):log1p()
end

function StudentT:entropy()
  local df = self.df
  local half, next_half = df / 2, (df + 1) / 2
  return self.scale:log() + next_half * (next_half:digamma() - half:digamma())
    + (df * math.pi):log() / 2 + half:lgamma() - next_half:lgamma()
end

return StudentT
