-- stdlib/nn/RReLU.lua: x; times a random slope where it is negative, in evaluation mode the mean
-- slope. Xu et al.: Empirical evaluation of rectified activations in convolutional network, 2015.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local dropouts = require "ltrain.ops.dropouts"

local RReLU = Module:extend("RReLU")

local SIGNATURE <const> = config.signature {
  { "lower", type = "number", default = 1 / 8, doc = "smallest slope" },
  { "upper", type = "number", default = 1 / 3, doc = "largest slope" },
}

--- nn.RReLU(0.1, 0.3)
function RReLU:init(lower, upper)
  self.options = config.arguments("nn.RReLU", SIGNATURE, lower, upper)
end

---@param x Tensor of any shape -> the same
function RReLU:forward(x)
  local y = dropouts.rrelu(x, self.options.lower, self.options.upper, self.training)
  return y
end

function RReLU:extra_repr()
  return ("%g, %g"):format(self.options.lower, self.options.upper)
end

return RReLU
