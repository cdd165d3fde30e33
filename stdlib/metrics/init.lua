--- stdlib/metrics/init.lua: lt.metrics: each is the file of its name.
local catalogue = require "ltrain.core.catalogue"

-- What torchmetrics calls a metric: it has F1Score, MeanMetric, BinaryAccuracy.
local function rename(name)
  for _, task in ipairs { "Binary", "Multiclass", "Multilabel" } do
    name = name:gsub("^" .. task, "")
  end
  return (name:gsub("^(F1)Score$", "%1"):gsub("Metric$", ""))
end

return catalogue("ltrain.metrics", "metrics", nil, rename)
