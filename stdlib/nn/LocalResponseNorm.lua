-- stdlib/nn/LocalResponseNorm.lua: local response normalization: x divided by a power of the mean
-- square over neighbouring channels (Krizhevsky et al. 2012). N batch, C channels.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local local_response_norm = require "ltrain.ops.local_response_norm"

local LocalResponseNorm = Module:extend("LocalResponseNorm")

local SIGNATURE <const> = config.signature {
  { "size", type = "integer", required = true, min = 1, doc = "number of neighbouring channels" },
  { "alpha", type = "number", default = 1e-4, doc = "factor of the mean" },
  { "beta", type = "number", default = 0.75, doc = "the power" },
  { "k", type = "number", default = 1, doc = "added to the mean" },
}

--- nn.LocalResponseNorm(5, {k = 2.0})
function LocalResponseNorm:init(size, alpha, beta, k)
  self.options = config.arguments("nn.LocalResponseNorm", SIGNATURE, size, alpha, beta, k)
end

---@param x Tensor [N, C, ...] -> the same
function LocalResponseNorm:forward(x)
  local y = local_response_norm(x, self.options)
  return y
end

function LocalResponseNorm:extra_repr()
  local o = self.options
  return ("%d, alpha=%g, beta=%g, k=%g"):format(o.size, o.alpha, o.beta, o.k)
end

return LocalResponseNorm
