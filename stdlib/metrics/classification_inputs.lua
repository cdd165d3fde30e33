--- stdlib/metrics/classification_inputs.lua: checks of scores, labels and options that
--- classification metrics share, and their warning when there were no samples.
--
-- N rows, C classes or labels.
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local has_shape = require "ltrain.core.has_shape"
local is_float = require "ltrain.core.is_float"

local inputs = {}

inputs.NAN = math.abs(0.0 / 0.0) -- without the sign that print would show

--- Whether a tensor holds scores, not ids.
function inputs.is_float(x) return is_float(x.dtype) end

--- Raises unless scores (or ids) and labels are tensors, labels integers. `who`: the metric's name.
function inputs.check(who, scores, labels)
  for _, value in ipairs { scores or false, labels or false } do
    if type(value) ~= "userdata" then
      errors.blame("metrics.%s: update needs scores and labels: got %s and %s", who,
        errors.show(scores), errors.show(labels))
    end
  end
  if is_float(labels.dtype) then
    errors.blame("metrics.%s: labels must be integers: got %s", who, labels.dtype)
  end
end

local NO_PROBABILITIES <const> = "metrics.%s: threshold = %g is for probabilities: got scores from "
  .. "%g to %g; for logits give from_logits = true, or threshold = 0"

-- Whether to look at these scores of a metric: on a device, which a look waits for, at those of the
-- first batch alone.
local function is_to_check(metric, scores)
  if scores.device == "cpu" then return true end
  local is_first = not metric._scores_checked
  metric._scores_checked = true
  return is_first
end

--- Returns which scores predict label 1: those above the metric's threshold, a probability. With
--- `from_logits` the threshold's logit is compared, so that no sigmoid is rounded.
function inputs.above(metric, scores)
  local threshold = metric.threshold
  if metric.from_logits then
    return scores:gt(math.log(threshold / (1 - threshold)))
  elseif threshold > 0 and threshold < 1 and scores:numel() > 0 and is_to_check(metric, scores) then
    local low, high = scores:amin():item(), scores:amax():item()
    if low < 0 or high > 1 then
      errors.blame(NO_PROBABILITIES, getmetatable(metric).__name, threshold, low, high)
    end
  end
  return scores:gt(threshold)
end

--- Raises unless scores are in 0..1, as `what` requires.
function inputs.check_probabilities(metric, scores, what)
  if not is_to_check(metric, scores) then return end
  local who, low, high = getmetatable(metric).__name, scores:amin():item(), scores:amax():item()
  if low >= 0 and high <= 1 then return end
  errors.blame("metrics.%s: %s from 0 to 1 (from_logits = true for logits): got %g to %g", who,
    what or "probabilities are", low, high)
end

--- Raises unless threshold and from_logits are compatible.
function inputs.check_threshold(who, o)
  if o.from_logits and not (o.threshold > 0 and o.threshold < 1) then
    errors.blame("metrics.%s: with from_logits the threshold is a probability between 0 and 1: "
      .. "got %g", who, o.threshold)
  end
end

--- The row of the option task, which must agree with num_classes and num_labels.
inputs.task = { type = "string", choices = { "binary", "multiclass", "multilabel" },
  doc = "multiclass needs num_classes, multilabel num_labels; by default it follows from these" }

--- Raises unless the task is that of num_classes and num_labels.
function inputs.check_task(who, o)
  local said = o.num_classes and "multiclass" or o.num_labels and "multilabel" or "binary"
  if o.task == nil or o.task == said then return end
  errors.blame("metrics.%s: task = '%s' %s", who, o.task, o.task == "binary"
    and "has neither num_classes nor num_labels" or o.task == "multiclass" and "needs num_classes"
    or "needs num_labels")
end

--- Whether both have one shape.
inputs.same_shape = has_shape

--- Raises unless scores are [N, C, ...] and labels [N, ...], as in cross entropy.
function inputs.check_classes(who, scores, labels)
  local s, l = scores.shape, labels.shape
  local fits = #s == #l + 1 and s[1] == l[1]
  for i = 2, #l do fits = fits and s[i + 1] == l[i] end
  if fits then return end
  errors.blame("metrics.%s: shapes do not fit: scores %s, labels %s; expected [N, C, ...] and "
    .. "[N, ...], or the same", who, errors.show_shape(scores), errors.show_shape(labels))
end

--- x [N, C, ...] as rows [N..., C].
function inputs.rows(x)
  local shape = x.shape
  if #shape > 2 then
    local order = { 1 }
    for i = 3, #shape do order[#order + 1] = i end
    order[#order + 1] = 2
    x = x:permute(order)
  end
  return x:reshape { -1, shape[2] }
end

--- Raises unless num_classes, num_labels and average are compatible: a metric of more than one
--- class requires an average. Returns the number of columns of states.
function inputs.check_average(who, o, choices)
  local count = o.num_classes or o.num_labels
  if o.num_classes and o.num_labels then
    errors.blame("metrics.%s: num_classes and num_labels exclude each other", who)
  elseif count and not o.average then
    errors.blame("metrics.%s: with num_classes or num_labels say how to average: "
      .. "average = %s", who, choices)
  elseif not count and o.average then
    errors.blame("metrics.%s: average = '%s' needs num_classes or num_labels", who, o.average)
  end
  return count or 1
end

--- Raises an error: the option requires num_classes.
function inputs.needs_classes(who, option, value)
  errors.blame("metrics.%s: %s = %s needs num_classes", who, option, tostring(value))
end

--- Prints a warning, once a metric.
function inputs.warn(metric, text)
  if metric._warned then return end
  console.say(("warning: metrics.%s: %s"):format(getmetatable(metric).__name, text))
  metric._warned = true
end

--- Returns nan, the value without samples, and reports it once.
function inputs.nothing(metric, why)
  inputs.warn(metric, (why or "there were no samples") .. ": the value is nan")
  return inputs.NAN
end

return inputs
