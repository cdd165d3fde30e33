-- stdlib/ops/triplets.lua: lt.triplet_margin_with_distance_loss: the triplet loss with a distance
-- function of the script's. N triplets, D features.

local arguments = require "ltrain.ops.arguments"
local config = require "ltrain.core.config"
local distances = require "ltrain.ops.distances"

local triplets = {}

--- Options of the loss and of its layer.
triplets.options = {
  distance_function = { type = "any",
    doc = "function(a, b) or a layer, distances [N] of pairs; by default pairwise_distance" },
  margin = { type = "number", default = 1, above = 0 },
  swap = { type = "boolean", default = false,
    doc = "use the positive as the anchor if it is closer to the negative" },
  reduction = { type = "string", default = "mean", choices = { "mean", "sum", "none" } },
}

--- max(0, margin + d(anchor, positive) - d(anchor, negative)) of a distance d.
---@param anchor Tensor [N, D]
---@param positive Tensor [N, D]
---@param negative Tensor [N, D] -> [], [N] where `reduction` is "none"
function triplets.triplet_margin_with_distance_loss(anchor, positive, negative, options)
  local where <const> = "triplet_margin_with_distance_loss"
  arguments.tensor(anchor, where, "anchor")
  arguments.tensor(positive, where, "positive")
  arguments.tensor(negative, where, "negative")
  local o <const> = config.check(options, triplets.options, where)
  local distance <const> = o.distance_function or distances.pairwise_distance
  local near, far = distance(anchor, positive), distance(anchor, negative)
  if o.swap then far = far:minimum(distance(positive, negative)) end
  local loss <const> = (near - far + o.margin):relu()
  if o.reduction == "none" then return loss end
  return o.reduction == "sum" and loss:sum() or loss:mean()
end

return triplets
