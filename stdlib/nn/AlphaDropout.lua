-- stdlib/nn/AlphaDropout.lua: dropout that preserves the mean 0 and variance 1 of SELU's outputs.
-- Klambauer et al.: Self-normalizing neural networks, 2017.

local Dropout = require "ltrain.nn.Dropout"
local dropouts = require "ltrain.ops.dropouts"

local AlphaDropout = Dropout:extend("AlphaDropout")

AlphaDropout.__arguments = "p"

--- nn.AlphaDropout(0.1): the probability p, 0.5 by default
function AlphaDropout:init(p) Dropout.init(self, p) end

---@param x Tensor of any shape -> the same
function AlphaDropout:forward(x)
  if not self.training then return x end
  local y = dropouts.alpha_dropout(x, self.p)
  return y
end

return AlphaDropout
