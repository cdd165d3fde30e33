-- stdlib/nn/GELU.lua: x times the cumulative normal distribution function of x.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"

local GELU = Module:extend("GELU")

GELU.__arguments = "| approximate"

local OPTIONS <const> = {
  approximate = { type = "string", default = "none", choices = { "none", "tanh" } },
}

--- nn.GELU() or nn.GELU{approximate = "tanh"}
function GELU:init(options)
  self.approximate = config.check(options, OPTIONS, "nn.GELU").approximate
end

function GELU:forward(x)
  local y
  if self.approximate == "tanh" then y = x:gelu_tanh() else y = x:gelu() end
  return y
end

function GELU:extra_repr()
  return self.approximate == "none" and "" or ("{approximate = %q}"):format(self.approximate)
end

return GELU
