-- stdlib/distributions/Categorical.lua: one of K categories, 0..K - 1.
-- B batch, K categories.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local errors = require "ltrain.core.errors"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local Categorical = Distribution:extend("Categorical")

Categorical.__arguments = "probs | logits validate_args"

Categorical.arg_constraints = { probs = constraints.weights, logits = constraints.log_weights }
Categorical.support = constraints.category

--- Categorical(probs, options), Categorical{logits = x}: the last dim is the categories; probs need
--- not sum to 1.
---@param probs Tensor [B..., K]
function Categorical:init(probs, options)
  local where <const> = "distributions.Categorical"
  local logits
  logits, options = probs_or_logits.logits(probs, options, where)
  self:_set_options(options)
  local given = probs_or_logits.tensor(logits or probs, where, logits and "logits" or "probs")
  if given.ndim == 0 then
    errors.blame("%s: the last dim is that of the categories: got %s", where, errors.show(given))
  end
  self:_validate_parameter(logits and "logits" or "probs", given)
  if logits ~= nil then
    self.logits = given - given:logsumexp(-1, { keepdim = true })
    self.probs = self.logits:exp()
  else
    self.probs = given / given:sum(-1, { keepdim = true })
    self.logits = probs_or_logits.clamped(self.probs):log()
  end
  self.batch_shape, self.event_shape = table.move(given.shape, 1, given.ndim - 1, 1, {}), {}
  self.options = { dtype = given.dtype, device = given.device }
end

function Categorical:_mean() return c.full(self.batch_shape, 0 / 0, self.options) end
Categorical._variance = Categorical._mean
function Categorical:_mode() return self.probs:argmax(-1) end

function Categorical:sample(sample_shape)
  local _ <close> = c.no_grad()
  local n, k = 1, self.probs.shape[self.probs.ndim]
  for _, size in ipairs(sample_shape or {}) do n = n * size end
  local drawn = self.probs:reshape(-1, k):multinomial(n, { replacement = true })
  return drawn:t():reshape(self:shape_of(sample_shape))
end

function Categorical:log_prob(value)
  value = self:validate_sample(value)
  local ids = value:to "i64":unsqueeze(-1)
  local all = self.logits + ids:to(self.options.dtype) * 0
  local shape = all.shape
  shape[#shape] = 1
  return all:gather(-1, ids:expand(shape):contiguous()):squeeze(-1)
end

function Categorical:entropy()
  return -(self.logits * self.probs):masked_fill(self.probs:eq(0), 0):sum(-1)
end

function Categorical:_kl(q)
  local t = self.probs * (self.logits - q.logits)
  return t:masked_fill(self.probs:eq(0), 0):sum(-1)
end

return Categorical
