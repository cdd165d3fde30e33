-- stdlib/ops/local_response_norm.lua: lt.local_response_norm: x divided by a power of the mean
-- square of neighbouring channels (Krizhevsky et al. 2012). N batch, C channels.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local SIGNATURE <const> = config.signature {
  { "size", type = "integer", required = true, min = 1, doc = "number of neighbouring channels" },
  { "alpha", type = "number", default = 1e-4 },
  { "beta", type = "number", default = 0.75 },
  { "k", type = "number", default = 1 },
}

--- x / (k + alpha * mean)^beta, with the mean of the squares of `size` neighbouring channels
--- (Krizhevsky et al. 2012).
---@param x Tensor [N, C, ...] -> the same
return function(x, size, alpha, beta, k)
  local who <const> = "local_response_norm"
  arguments.tensor(x, who, "x")
  local o <const> = config.arguments(who, SIGNATURE, size, alpha, beta, k)
  if x.ndim < 3 then
    errors.blame("%s: x must be [N, C, L] or have more dims: got %s", who, errors.show_shape(x))
  end
  if x:numel() == 0 then return x end
  local squares <const> = (x * x):reshape { x.shape[1], 1, x.shape[2], -1 }
  local padded <const> = c.pad(squares, { 0, 0, o.size // 2, (o.size - 1) // 2 })
  local mean <const> = c.avg_pool2d(padded, { o.size, 1 }, { stride = 1 }):reshape(x.shape)
  return x / (mean * o.alpha + o.k) ^ o.beta
end
