--- stdlib/metrics/RunningMean.lua: the mean of the last values.
local Mean = require "ltrain.metrics.Mean"
local Running = require "ltrain.metrics.Running"

local RunningMean = Running:extend("RunningMean")

RunningMean.__arguments = "| window"

--- RunningMean{window = 100}
function RunningMean:init(options) Running.init(self, Mean(), options) end

return RunningMean
