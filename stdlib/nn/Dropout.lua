-- stdlib/nn/Dropout.lua: zeroes random elements in training, and scales the others by 1 / (1 - p).

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local Dropout = Module:extend("Dropout")

Dropout.__arguments = "p"

--- nn.Dropout(0.1): the probability p, 0.5 by default
function Dropout:init(p)
  self.p = config.value(p == nil and 0.5 or p, { type = "number", min = 0, max = 1 },
    "nn." .. self.__name, "p")
end

function Dropout:forward(x)
  if not self.training or self.p == 0 then return x end
  local y = c.dropout(x, self.p)
  return y
end

function Dropout:extra_repr() return ("%g"):format(self.p) end

return Dropout
