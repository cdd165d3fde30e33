-- stdlib/nn/LearnedPositions.lua: learned position embeddings: adds a trained vector for each
-- position. N batch, T positions, E features.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local initialise = require "ltrain.nn.initialise"
local position_encodings = require "ltrain.nn.position_encodings"

local LearnedPositions = Module:extend("LearnedPositions")

LearnedPositions.__arguments = "max_length d_model | std"

local OPTIONS <const> = {
  std = { type = "number", default = 0.02, min = 0, doc = "standard deviation of the initial "
    .. "values" },
}

--- nn.LearnedPositions(1024, 768): positions and features
function LearnedPositions:init(max_length, d_model, options)
  local name <const> = "nn.LearnedPositions"
  config.argument(max_length, "integer", name, "max_length", { min = 1 })
  config.argument(d_model, "integer", name, "d_model", { min = 1 })
  self.weight = c.parameter(c.empty(max_length, d_model))
  initialise.normal_(self.weight, 0, config.check(options, OPTIONS, name).std)
end

--- `offset`: the position of the first element, from 0 (the length of a cache).
---@param x Tensor [N, T, E] -> the same
function LearnedPositions:forward(x, offset)
  local y = x + position_encodings.part(self.weight, x.shape[2], offset, "nn.LearnedPositions")
  return y
end

return LearnedPositions
