-- stdlib/nn/PairwiseDistance.lua: the p-norm of x1 - x2 + eps over the last dim.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local distances = require "ltrain.ops.distances"

local PairwiseDistance = Module:extend("PairwiseDistance")

local SIGNATURE <const> = config.signature {
  { "p", type = "number", default = 2, doc = "of the norm" },
  { "eps", type = "number", default = 1e-6, doc = "added to each difference" },
  { "keepdim", type = "boolean", default = false, doc = "keep the dim of the norm, with size 1" },
}

--- nn.PairwiseDistance(2, {keepdim = true})
function PairwiseDistance:init(p, eps, keepdim)
  self.options = config.arguments("nn.PairwiseDistance", SIGNATURE, p, eps, keepdim)
end

---@param x1 Tensor [..., D]
---@param x2 Tensor [..., D] -> [...]
function PairwiseDistance:forward(x1, x2)
  local y = distances.pairwise_distance(x1, x2, self.options)
  return y
end

return PairwiseDistance
