--- stdlib/metrics/ClasswiseWrapper.lua: names for the values of a metric that has one for each
--- class.
--
--   local lt = require "ltrain"
--   local recall = lt.metrics.Recall{num_classes = 2, average = "none"}
--   local by_class = lt.metrics.ClasswiseWrapper(recall, {labels = {"cat", "dog"}})
--   by_class:update(lt.tensor{0, 1, 1}, lt.tensor{0, 0, 1})
--   print(by_class:compute().recall_cat, by_class:compute().recall_dog)
--   -- prints: 0.5	1.0
--
-- `self:log_dict(by_class)` logs them.
local Wrapper = require "ltrain.metrics.metric_wrapper"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local ClasswiseWrapper = Wrapper:extend("ClasswiseWrapper")

ClasswiseWrapper.__arguments = "metric | labels prefix postfix"

-- The value of one class, as a Trainer's loop logs it.
local OfClass = Wrapper:extend("OfClass")

function OfClass:init(metric, index)
  Wrapper.init(self, metric, "ClasswiseWrapper")
  self.index = index
end

function OfClass:shown(values) return values[self.index]:item() end

local OPTIONS <const> = {
  labels = { type = "table", doc = "names of classes; by default their numbers, from 0" },
  prefix = { type = "string", doc = "prefix of names; by default the metric's name and _" },
  postfix = { type = "string", default = "", doc = "suffix of names" },
}

--- ClasswiseWrapper(Recall{num_classes = 2, average = "none"}, {labels = {"cat", "dog"}})
function ClasswiseWrapper:init(metric, options)
  local o = config.check(options, OPTIONS, "metrics.ClasswiseWrapper")
  Wrapper.init(self, metric, "ClasswiseWrapper")
  if metric.average ~= "none" and (metric.num_classes or metric.num_labels) then
    errors.blame("metrics.ClasswiseWrapper: the metric must have average = 'none': got %s",
      errors.show(metric.average))
  end
  self.labels, self.postfix = o.labels, o.postfix
  self.prefix = o.prefix or getmetatable(metric).__name:lower() .. "_"
  self._parts = {}
end

local function name_of(self, i)
  local label = self.labels and self.labels[i] or not self.labels and i - 1
  if not label then
    errors.blame("metrics.ClasswiseWrapper: there are %d labels, and a class %d", #self.labels,
      i - 1)
  end
  return self.prefix .. label .. self.postfix
end

--- Returns the wrapper's value for a value of the metric.
function ClasswiseWrapper:shown(values)
  if not c.is_tensor(values) or values.ndim ~= 1 then
    errors.blame("metrics.ClasswiseWrapper: %s must compute a value for each class: got %s",
      getmetatable(self.metric).__name, errors.show(values))
  end
  local named = {}
  for i, value in ipairs(values:tolist()) do named[name_of(self, i)] = value end
  return named
end

--- The metrics that `log_dict` logs, by name.
function ClasswiseWrapper:named_metrics()
  local count = self.metric.num_classes or self.metric.num_labels or self.metric.num_outputs
    or #self.labels
  local named = {}
  for i = 1, count do
    self._parts[i] = self._parts[i] or OfClass(self.metric, i)
    self._parts[i].batch_value = self.batch_value and self.batch_value[name_of(self, i)]
    named[name_of(self, i)] = self._parts[i]
  end
  return named
end

--- Returns a table of values by name.
function ClasswiseWrapper:compute() return self:shown(self.metric:compute { sync = false }) end

return ClasswiseWrapper
