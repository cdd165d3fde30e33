-- stdlib/nn/RotaryPositions.lua: rotary position embeddings: rotates pairs of features of queries
-- and keys by their position. N batch, H heads, T positions, D features of a head.
--
-- Su et al.: RoFormer, 2021. A pair is feature i and i + D / 2, as in Llama's weights of Hugging
-- Face; with `interleaved` 2i and 2i + 1, as in the paper.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local position_encodings = require "ltrain.nn.position_encodings"

local RotaryPositions = Module:extend("RotaryPositions")

RotaryPositions.__arguments = "head_dim | max_length base interleaved"

local OPTIONS <const> = {
  max_length = { type = "integer", default = 4096, min = 1 },
  base = { type = "number", default = 10000, above = 0 },
  interleaved = { type = "boolean", default = false, doc = "rotate pairs of adjacent features" },
}

--- nn.RotaryPositions(64): features of a head, an even number
function RotaryPositions:init(head_dim, options)
  local name <const> = "nn.RotaryPositions"
  local o = config.check(options, OPTIONS, name)
  self.interleaved = o.interleaved
  local angles = position_encodings.angles(head_dim, o.max_length, o.base, name)
  self:register_buffer("cos", angles:cos(), { persistent = false })
  self:register_buffer("sin", angles:sin(), { persistent = false })
end

--- `offset`: the position of the first element, from 0 (the length of a cache).
---@param x Tensor [N, H, T, D] -> the same
function RotaryPositions:forward(x, offset)
  local name <const>, shape = "nn.RotaryPositions", x.shape
  local cos = position_encodings.part(self.cos, shape[3], offset, name):to(x.dtype)
  local sin = position_encodings.part(self.sin, shape[3], offset, name):to(x.dtype)
  local n, half = 4, shape[4] // 2
  local a, b
  if self.interleaved then
    local pairs_of = x:reshape(shape[1], shape[2], shape[3], half, 2)
    a, b, n = pairs_of:select(5, 1), pairs_of:select(5, 2), 5
  else
    a, b = x:narrow(4, 1, half), x:narrow(4, half + 1, half)
  end
  local join = n == 5 and c.stack or c.cat
  local y = join({ a * cos - b * sin, b * cos + a * sin }, { dim = n }):reshape(shape)
  return y
end

return RotaryPositions
