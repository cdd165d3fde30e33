-- stdlib/nn/GLU.lua: a * sigmoid(b) of the halves a and b of x along a dim.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local GLU = Activation:extend("GLU")

GLU.__arguments = "dim"

GLU.options = config.signature {
  { "dim", type = "integer", default = -1, doc = "the dim to split" },
}

--- nn.GLU() or nn.GLU(2)
function GLU:init(dim) self:take(dim) end

function GLU:forward(x)
  local y = x:glu(self.dim)
  return y
end

return GLU
