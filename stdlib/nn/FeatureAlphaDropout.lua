-- stdlib/nn/FeatureAlphaDropout.lua: AlphaDropout of entire channels [N, C, ...].

local Dropout = require "ltrain.nn.Dropout"
local dropouts = require "ltrain.ops.dropouts"

local FeatureAlphaDropout = Dropout:extend("FeatureAlphaDropout")

FeatureAlphaDropout.__arguments = "p"

--- nn.FeatureAlphaDropout(0.1): the probability p, 0.5 by default
function FeatureAlphaDropout:init(p) Dropout.init(self, p) end

---@param x Tensor [N, C, ...] -> the same
function FeatureAlphaDropout:forward(x)
  if not self.training then return x end
  local y = dropouts.feature_alpha_dropout(x, self.p)
  return y
end

return FeatureAlphaDropout
