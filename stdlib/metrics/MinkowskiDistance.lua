--- stdlib/metrics/MinkowskiDistance.lua: (sum |x - y|^p)^(1/p) over all elements.
local Pointwise = require "ltrain.metrics.elementwise_error"

local MinkowskiDistance = Pointwise:extend("MinkowskiDistance")

MinkowskiDistance.__arguments = "| p"

MinkowskiDistance.higher_is_better = false

MinkowskiDistance.options = {
  p = { type = "number", required = true, min = 1, doc = "the exponent" },
}

--- MinkowskiDistance{p = 3}
function MinkowskiDistance:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function MinkowskiDistance:terms(x, y)
  return (x - y):abs():pow(self.p)
end

--- Returns the distance.
function MinkowskiDistance:finish(total, _) return total:pow(1 / self.p) end

return MinkowskiDistance
