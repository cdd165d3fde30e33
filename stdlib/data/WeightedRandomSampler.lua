-- stdlib/data/WeightedRandomSampler.lua: draws positions with probabilities proportional to
-- weights.
--
--   local lt = require "ltrain"
--   local labels = lt.tensor({0, 0, 0, 0, 0, 0, 1, 1}, {dtype = "i64"})
--   local share = 1 / labels:bincount():to "f32" -- rare classes as often as others
--   local weights = share:index_select(1, labels)
--   local sampler = lt.data.WeightedRandomSampler(weights, 1000)
--   print(#sampler) -- prints: 1000

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local WeightedRandomSampler = class.extend(nil, "WeightedRandomSampler")

WeightedRandomSampler.__arguments = "weights num_samples | replacement"

local OPTIONS <const> = {
  replacement = { type = "boolean", default = true, doc = "draw with replacement" },
}

WeightedRandomSampler.__arguments = "weights num_samples | replacement"

--- `weights`: a tensor [n] or a list, one for each sample, none negative; they need not sum to 1.
---@param weights Tensor|table
---@param num_samples integer samples of an epoch
function WeightedRandomSampler:init(weights, num_samples, options)
  local o <const> = config.check(options, OPTIONS, "WeightedRandomSampler")
  config.argument(num_samples, "integer", "WeightedRandomSampler", "num_samples", { min = 1 })
  if type(weights) == "table" then weights = c.tensor(weights) end
  if not c.is_tensor(weights) or weights.ndim ~= 1 then
    errors.blame("WeightedRandomSampler: weights must be a tensor [n] or a list: got %s",
      errors.show(weights))
  end
  self._weights, self._count = weights:detach():to("cpu"):to "f64", num_samples
  self._replacement = o.replacement
  if not self._weights:isfinite():all():item() or self._weights:lt(0):any():item() then
    errors.blame "WeightedRandomSampler: a weight is negative or not finite"
  end
  local some <const> = self._weights:count_nonzero():item()
  if some == 0 or not o.replacement and some < num_samples then
    errors.blame("WeightedRandomSampler: %d samples without replacement: %d weights are not 0",
      num_samples, some)
  end
end

function WeightedRandomSampler:__len() return self._count end

--- Returns the positions of an epoch.
function WeightedRandomSampler:indices(_)
  local drawn <const> = self._weights:multinomial(self._count, { replacement = self._replacement })
  return (drawn + 1):tolist()
end

return WeightedRandomSampler
