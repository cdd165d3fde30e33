-- stdlib/ops/distances.lua: lt.pairwise_distance, lt.pdist and lt.renorm: p-norms of differences,
-- and rows limited to one.

local arguments = require "ltrain.ops.arguments"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local triangles = require "ltrain.ops.triangles"

local distances = {}

local SIGNATURE <const> = config.signature {
  { "p", type = "number", default = 2, doc = "of the norm" },
  { "eps", type = "number", default = 1e-6, doc = "added to each difference" },
  { "keepdim", type = "boolean", default = false, doc = "keep the dim of the norm, with size 1" },
}

local P <const> = config.signature {
  { "p", type = "number", default = 2, min = 0, doc = "of the norm" },
}
local RENORM <const> = config.signature {
  { "p", type = "number", required = true, above = 0, doc = "of the norm" },
  { "dim", type = "integer", required = true }, { "maxnorm", type = "number", required = true },
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

--- Pairwise p-norm distances between rows: the upper triangle of cdist(x, x), without the diagonal.
---@param x Tensor [N, D] -> [N (N - 1) / 2]
function distances.pdist(x, p)
  arguments.tensor(x, "pdist", "x")
  local o <const> = config.arguments("pdist", P, p)
  if x.ndim ~= 2 then errors.blame("pdist: x must be [N, D]: got %s", errors.show_shape(x)) end
  local at <const> = triangles.triu_indices(x.shape[1], x.shape[1], 1, "i64", x.device)
  return (x:index_select(1, at:select(1, 1)) - x:index_select(1, at:select(1, 2))):norm(o.p, 2)
end

--- Scales positions of a dim whose p-norm is larger than `maxnorm` down to it.
---@param x Tensor [..., N, ...] -> the same
function distances.renorm(x, p, dim, maxnorm)
  arguments.tensor(x, "renorm", "x")
  local o <const> = config.arguments("renorm", RENORM, p, dim, maxnorm)
  local along <const>, others = arguments.dim(o.dim, x.ndim, "renorm"), {}
  if x.ndim < 2 then
    errors.blame("renorm: x must have 2 dims or more: got %s", errors.show_shape(x))
  end
  for k = 1, x.ndim do
    if k ~= along then others[#others + 1] = k end
  end
  local norm <const> = x:norm { p = o.p, dims = others, keepdim = true }
  return x * (o.maxnorm / (norm + 1e-7)):masked_fill(norm:le(o.maxnorm), 1)
end

return distances
