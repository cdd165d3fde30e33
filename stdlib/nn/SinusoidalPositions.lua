-- stdlib/nn/SinusoidalPositions.lua: sinusoidal position encodings: adds sines and cosines of the
-- position. N batch, T positions, E features.
--
-- Vaswani et al.: Attention is all you need, 2017: feature 2i is sin(t / 10000^(2i / E)), feature
-- 2i + 1 the cosine.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local position_encodings = require "ltrain.nn.position_encodings"

local SinusoidalPositions = Module:extend("SinusoidalPositions")

SinusoidalPositions.__arguments = "d_model | max_length base"

local OPTIONS <const> = {
  max_length = { type = "integer", default = 5000, min = 1 },
  base = { type = "number", default = 10000, above = 0 },
}

--- nn.SinusoidalPositions(512): features, an even number
function SinusoidalPositions:init(d_model, options)
  local name <const> = "nn.SinusoidalPositions"
  local o = config.check(options, OPTIONS, name)
  local angles = position_encodings.angles(d_model, o.max_length, o.base, name)
  local table = c.stack({ angles:sin(), angles:cos() }, { dim = 3 }):reshape(o.max_length, d_model)
  self:register_buffer("table", table, { persistent = false })
end

--- `offset`: the position of the first element, from 0 (the length of a cache).
---@param x Tensor [N, T, E] -> the same
function SinusoidalPositions:forward(x, offset)
  local y = x + position_encodings.part(self.table, x.shape[2], offset, "nn.SinusoidalPositions")
  return y
end

return SinusoidalPositions
