--- stdlib/metrics/RunningSum.lua: the sum of the last values.
local Sum = require "ltrain.metrics.Sum"
local Running = require "ltrain.metrics.Running"

local RunningSum = Running:extend("RunningSum")

RunningSum.__arguments = "| window"

--- RunningSum{window = 100}
function RunningSum:init(options) Running.init(self, Sum(), options) end

return RunningSum
