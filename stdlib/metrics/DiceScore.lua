--- stdlib/metrics/DiceScore.lua: the Dice score of segmentations: 2 |A and B| / (|A| + |B|).
--
-- L. Dice, Measures of the Amount of Ecologic Association between Species, 1945.
--
-- By default it is computed for each image and averaged over images. N images, C classes.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local DiceScore = Metric:extend("DiceScore")

DiceScore.__arguments = "| num_classes include_background average aggregation_level"

DiceScore.higher_is_better = true

DiceScore.options = {
  num_classes = { type = "integer", required = true, min = 2, doc = "number of classes" },
  include_background = { type = "boolean", default = true, doc = "count class 0 too" },
  average = { type = "string", default = "macro",
    choices = { "macro", "micro", "weighted", "none" },
    doc = "over classes: the mean over those that occur or are predicted, the score of all "
      .. "pixels, the mean weighted by number of pixels, or a tensor [C]" },
  aggregation_level = { type = "string", default = "samplewise",
    choices = { "samplewise", "global" }, doc = "the mean over images, or all pixels together" },
}

--- DiceScore{num_classes = 3, average = "macro"}
function DiceScore:init(options)
  local o = config.check(options, self.options, "metrics.DiceScore")
  for name, value in next, o do self[name] = value end
  for _, name in ipairs { "both", "said", "meant" } do self:add_state(name, {}) end
end

-- Ids [N, ...] as one-hot rows [N, C, M] of the classes that count.
local function one_hot(self, ids)
  local hot = c.one_hot(ids:to "i64":reshape { ids.shape[1], -1 }, self.num_classes)
  hot = hot:transpose(2, 3)
  return self.include_background and hot or hot:narrow(2, 2, self.num_classes - 1)
end

--- Updates the metric with scores [N, C, ...] or ids [N, ...], and ids [N, ...].
function DiceScore:update(scores, labels)
  inputs.check("DiceScore", scores, labels)
  local said = scores:detach()
  if not inputs.same_shape(scores, labels) then
    inputs.check_classes("DiceScore", scores, labels)
    if scores.shape[2] ~= self.num_classes then
      errors.blame("metrics.DiceScore: num_classes = %d: got scores %s", self.num_classes,
        errors.show_shape(scores))
    end
    said = said:argmax(2)
  end
  local a, b = one_hot(self, said), one_hot(self, labels)
  table.insert(self.both, (a * b):sum(3))
  table.insert(self.said, a:sum(3))
  table.insert(self.meant, b:sum(3))
end

-- Over the classes of each image: [N].
local function of_images(self, both, all, meant)
  if self.average == "micro" then return both:sum(2) * 2 / all:sum(2) end
  local each = both * 2 / all
  if self.average == "macro" then return each:nanmean(2) end
  local weighted = (each * (meant / meant:sum(2, { keepdim = true }))):nansum(2)
  local none = all:sum(2):eq(0)
  return none:where(c.full_like(weighted, inputs.NAN), weighted)
end

--- Returns the score over images (classes) that occur or are predicted; nan if none is, which is
--- reported once.
function DiceScore:compute()
  if #self.both == 0 then return inputs.nothing(self) end
  local both, meant = c.cat(self.both, 1):to "f64", c.cat(self.meant, 1):to "f64"
  local all = c.cat(self.said, 1):to "f64" + meant
  if self.aggregation_level == "global" then
    both, meant = both:sum(1, { keepdim = true }), meant:sum(1, { keepdim = true })
    all = all:sum(1, { keepdim = true })
  end
  if self.average == "none" then return (both * 2 / all):nanmean(1) end
  local value = of_images(self, both, all, meant):nanmean():item()
  return value == value and value or inputs.nothing(self)
end

return DiceScore
