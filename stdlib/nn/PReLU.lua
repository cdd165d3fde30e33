-- stdlib/nn/PReLU.lua: x; times a learned weight where it is negative.
-- C channels.

local Activation = require "ltrain.nn.activation"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local PReLU = Activation:extend("PReLU")

PReLU.__arguments = "num_parameters init"

PReLU.options = config.signature {
  { "num_parameters", type = "integer", default = 1, min = 1, doc = "1, or the channels of x" },
  { "init", type = "number", default = 0.25, doc = "initial weight" },
}

--- nn.PReLU() or nn.PReLU(64) or nn.PReLU{num_parameters = 64, init = 0.1}
function PReLU:init(num_parameters, init)
  local o = self:checked(num_parameters, init)
  self.weight = c.parameter(c.full({ o.num_parameters }, o.init))
end

---@param x Tensor [N, C, ...] -> the same
function PReLU:forward(x)
  local y = c.prelu(x, self.weight)
  return y
end

function PReLU:extra_repr() return tostring(self.weight:numel()) end

return PReLU
