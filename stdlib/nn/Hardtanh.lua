-- stdlib/nn/Hardtanh.lua: x limited to the range min_val..max_val.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Hardtanh = Activation:extend("Hardtanh")

Hardtanh.__arguments = "min_val max_val | inplace"

Hardtanh.options = config.signature {
  { "min_val", type = "number", default = -1 },
  { "max_val", type = "number", default = 1 },
  Activation.inplace_row,
}

--- nn.Hardtanh() or nn.Hardtanh(-2, 2)
function Hardtanh:init(min_val, max_val, options)
  self:take(min_val, max_val, options)
  if self.min_val >= self.max_val then
    errors.blame("nn.Hardtanh: min_val must be below max_val: got %g and %g", self.min_val,
      self.max_val)
  end
end

function Hardtanh:forward(x)
  local y = self.inplace and x:hardtanh_(self.min_val, self.max_val)
    or x:hardtanh(self.min_val, self.max_val)
  return y
end

return Hardtanh
