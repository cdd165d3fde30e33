--- stdlib/metrics/Accuracy.lua: the share of right answers, counted exactly.
--
-- N rows, C classes.
local Metric = require "ltrain.core.Metric"
local config = require "ltrain.core.config"
local console = require "ltrain.trainer.console"
local errors = require "ltrain.core.errors"

local Accuracy = Metric:extend("Accuracy")

local NAN <const> = math.abs(0.0 / 0.0) -- without the sign that print would show

local OPTIONS <const> = {
  top_k = { type = "integer", default = 1, min = 1,
    doc = "right when the label is among the k highest scores" },
  ignore_index = { type = "integer", doc = "rows with this label do not count" },
  threshold = { type = "number", default = 0.5,
    doc = "two classes: a score above it means 1" },
}

--- Accuracy{top_k = 5}
function Accuracy:init(options)
  local o = config.check(options, OPTIONS, "metrics.Accuracy")
  self.top_k, self.ignore_index, self.threshold = o.top_k, o.ignore_index, o.threshold
  self:add_state("correct", 0)
  self:add_state("total", 0)
end

local FLOATS <const> = { f32 = true, f64 = true, f16 = true, bf16 = true }

local function shape_text(x)
  return ("[%s]"):format(table.concat(x.shape, ", "))
end

local function check(scores, labels)
  for _, value in ipairs { scores, labels } do
    if type(value) ~= "userdata" then
      errors.blame("metrics.Accuracy: update needs scores and labels: got %s", errors.show(value))
    end
  end
  if FLOATS[labels.dtype] then
    errors.blame("metrics.Accuracy: labels must be integers: got %s", labels.dtype)
  end
end

-- Right or wrong for each label, as a bool tensor of the labels' shape.
local function right_answers(self, scores, labels)
  local s, l = scores.shape, labels.shape
  if #s == #l and shape_text(scores) == shape_text(labels) then
    if FLOATS[scores.dtype] then scores = scores:gt(self.threshold):to("i64") end
    return scores:eq(labels)
  end
  -- Classes are dim 2, as in cross entropy: [N, C, ...] against [N, ...].
  local fits = #s == #l + 1 and s[1] == l[1]
  for i = 2, #l do fits = fits and s[i + 1] == l[i] end
  if not fits then
    errors.blame("metrics.Accuracy: shapes do not fit: scores %s, labels %s; wanted [N, C, ...] "
      .. "and [N, ...], or the same", shape_text(scores), shape_text(labels))
  end
  if self.top_k == 1 then return scores:argmax(2):eq(labels) end
  local _, best = scores:topk(self.top_k, 2)
  return best:eq(labels:unsqueeze(2)):any(2)
end

--- update(scores, labels): [N, C] scores (or [N, C, ...], or [N] for two classes, or ids) and ids.
function Accuracy:update(scores, labels)
  check(scores, labels)
  local right = right_answers(self, scores, labels)
  local counted = labels:numel()
  if self.ignore_index then
    local counts = labels:ne(self.ignore_index)
    right = right:logical_and(counts)
    counted = counts:sum():item()
  end
  self.correct = self.correct + right:sum():item()
  self.total = self.total + counted
end

--- The share of right answers; nan when nothing was given, which is told once.
function Accuracy:compute()
  if self.total > 0 then return self.correct / self.total end
  if not self._told then
    console.say("warning: metrics.Accuracy: there were no samples: the figure is nan")
    self._told = true
  end
  return NAN
end

return Accuracy
