-- spec/api/metric_rows.lua: the rows of spec/api/rows.lua that are of metrics.
local lt = require "ltrain"

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

-- Metrics without options.
local BARE <const> = { Cat = true, Max = true, Mean = true, Metric = true, Min = true,
  MinMaxMetric = true, Sum = true }

-- Classes that several metrics are below, and one of these.
local BASES <const> = {
  Aggregation = "Sum", Curve = "ROC", Moments = "R2Score", Pointwise = "LogCoshError",
  Retrieval = "RetrievalMAP", Transcript = "WordErrorRate", Wrapper = "ClasswiseWrapper",
}

return function(rows)
  local function add(path, class, name)
    local holds = HOLDS[name]
    local made = ("lt.metrics.%s(%s)"):format(name, holds or REQUIRED[name] or "")
    local own = not BARE[name] and not path:find "Wrapper$" and rawget(class, "init")
    if own or holds and not BARE[name] and path:find "^lt" then
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
