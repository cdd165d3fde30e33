-- stdlib/nn/RReLU.lua: x; where it is negative times a random slope, in evaluation the mean one.
-- Xu et al.: Empirical evaluation of rectified activations in convolutional network, 2015.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local dropouts = require "ltrain.ops.dropouts"

local RReLU = Module:extend("RReLU")

local SIGNATURE <const> = config.signature {
  { "lower", type = "number", default = 1 / 8, doc = "the least slope" },
  { "upper", type = "number", default = 1 / 3, doc = "the largest one" },
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
