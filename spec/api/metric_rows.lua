-- spec/api/metric_rows.lua: the rows of spec/api/rows.lua that are of metrics.
local lt = require "ltrain"
local public = require "spec.api.public"

-- Options without which a metric is not made, and metrics that hold others: their first argument.
local REQUIRED <const> = {
  DiceScore = "{num_classes = 2}", ExactMatch = "{num_labels = 2}", FBetaScore = "{beta = 1}",
  MinkowskiDistance = "{p = 2}", PeakSignalNoiseRatio = "{data_range = 1}",
  StructuralSimilarityIndexMeasure = "{data_range = 1}",
}
local HOLDS <const> = {
  ClasswiseWrapper = "lt.metrics.Accuracy()", MetricCollection = "{lt.metrics.Accuracy()}",
  MetricTracker = "lt.metrics.Accuracy()", MinMaxMetric = "lt.metrics.Accuracy()",
  Running = "lt.metrics.Accuracy()",
}

-- Classes that several metrics are below, and one of these.
local BASES <const> = {
  Aggregation = "Sum", Curve = "ROC", Moments = "R2Score", Pointwise = "LogCoshError",
  Retrieval = "RetrievalMAP", Transcript = "WordErrorRate", Wrapper = "ClasswiseWrapper",
}

return function(rows)
  local function add(path, class, name)
    local holds = HOLDS[name]
    local made = ("lt.metrics.%s(%s)"):format(name, holds or REQUIRED[name] or "")
    local init = rawget(class, "init")
    local own = init and not path:find "Wrapper$"
    if (own or holds and path:find "^lt") and public.takes_options(public.named(class.init)) then
      rows.options[path] = ("lt.metrics.%s(%sOPTIONS)"):format(name, holds and holds .. ", " or "")
    end
    if rawget(class, "compute") then
      rows.options[path .. ":compute"] = made .. ":compute(OPTIONS)"
    end
    if rawget(class, "update") then
      rows.extra[path .. ":update"] = made .. ":update(x, x, x, EXTRA)"
    end
  end
  for _, name in pairs(lt.metrics) do
    if name ~= "Metric" then add("lt.metrics." .. name, lt.metrics[name], name) end
  end
  for _, name in ipairs { "best_metric", "compute_all" } do
    rows.options["lt.metrics.MetricTracker:" .. name] =
      ("lt.metrics.MetricTracker(lt.metrics.Accuracy()):%s(OPTIONS)"):format(name)
  end
  for base, name in pairs(BASES) do add("base." .. base, lt.metrics[name].super, name) end
end
