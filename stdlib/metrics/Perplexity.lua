--- stdlib/metrics/Perplexity.lua: the exponential of the mean negative log probability of targets.
--
-- B batch, T time, V vocabulary.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local Perplexity = Metric:extend("Perplexity")

Perplexity.__arguments = "| ignore_index"

Perplexity.higher_is_better = false

Perplexity.options = {
  ignore_index = { type = "integer", doc = "elements with this target are ignored" },
}

--- Perplexity{ignore_index = -100}
function Perplexity:init(options)
  local o = config.check(options, self.options, "metrics.Perplexity")
  self.ignore_index = o.ignore_index
  self:add_state("total", c.zeros({}, { dtype = "f64" }))
  self:add_state("count", c.zeros({}, { dtype = "i64" }))
end

--- Updates the metric with logits [B, T, V] and targets [B, T].
function Perplexity:update(logits, targets)
  inputs.check("Perplexity", logits, targets)
  local s, t = logits.shape, targets.shape
  if #s ~= 3 or #t ~= 2 or s[1] ~= t[1] or s[2] ~= t[2] then
    errors.blame("metrics.Perplexity: shapes do not fit: logits %s, targets %s; expected "
      .. "[B, T, V] and [B, T]", errors.show_shape(logits), errors.show_shape(targets))
  end
  local losses = c.cross_entropy(logits:detach():reshape { -1, s[3] }:to "f32",
    targets:reshape { -1 }, { reduction = "none", ignore_index = self.ignore_index or -100 })
  self.total = self.total + losses:to("f64"):sum()
  local counts = targets:ne(self.ignore_index or -100)
  self.count = self.count + counts:sum()
end

--- Returns the perplexity; nan without targets, which is reported once.
function Perplexity:compute()
  local count = self.count:item()
  return count > 0 and math.exp(self.total:item() / count) or inputs.nothing(self)
end

return Perplexity
