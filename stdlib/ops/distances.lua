-- stdlib/ops/distances.lua: lt.pairwise_distance.

local arguments = require "ltrain.ops.arguments"
local config = require "ltrain.core.config"

local distances = {}

local SIGNATURE <const> = config.signature {
  { "p", type = "number", default = 2, doc = "of the norm" },
  { "eps", type = "number", default = 1e-6, doc = "added to each difference" },
  { "keepdim", type = "boolean", default = false, doc = "the dim of the norm stays, of size 1" },
}

--- The p-norm of x1 - x2 + eps over the last dim.
---@param x1 Tensor [..., D]
---@param x2 Tensor [..., D] -> [...]
function distances.pairwise_distance(x1, x2, p, eps, keepdim)
  arguments.tensor(x1, "pairwise_distance", "x1")
  arguments.tensor(x2, "pairwise_distance", "x2")
  local o <const> = config.arguments("pairwise_distance", SIGNATURE, p, eps, keepdim)
  return (x1 - x2 + o.eps):norm(o.p, -1, o.keepdim)
end

return distances
