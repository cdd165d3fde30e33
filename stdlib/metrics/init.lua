--- stdlib/metrics/init.lua: lt.metrics: each is the file of its name.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.metrics", "metrics")
