-- stdlib/nn/TripletMarginWithDistanceLoss.lua: TripletMarginLoss with a custom distance function.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local triplets = require "ltrain.ops.triplets"

local TripletMarginWithDistanceLoss = Module:extend("TripletMarginWithDistanceLoss")

TripletMarginWithDistanceLoss.__arguments = "| distance_function margin swap reduction"

--- nn.TripletMarginWithDistanceLoss{distance_function = function(a, b) ... end, margin = 0.5}
function TripletMarginWithDistanceLoss:init(options)
  local o = config.check(options, triplets.options, "nn.TripletMarginWithDistanceLoss")
  self.distance_function, o.distance_function = o.distance_function, nil
  self.options = o
end

---@param anchor Tensor [N, D]
---@param positive Tensor [N, D]
---@param negative Tensor [N, D]
function TripletMarginWithDistanceLoss:forward(anchor, positive, negative)
  local o = { distance_function = self.distance_function }
  for name, value in next, self.options do o[name] = value end
  local loss = triplets.triplet_margin_with_distance_loss(anchor, positive, negative, o)
  return loss
end

return TripletMarginWithDistanceLoss
