-- stdlib/nn/KVCache.lua: a cache of the keys and values of earlier positions, so that generation
-- computes each position once. N batch, H heads, T positions, D features of a head.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local split_sequence = require "ltrain.core.split_sequence"

local KVCache = class.extend(nil, "KVCache")

--- nn.KVCache(2048): for up to 2048 positions. Its memory is allocated once, at the first append,
--- with the shape, dtype and device of the appended tensors. Field `length`: the number of cached
--- positions.
function KVCache:init(max_length)
  self.max_length = config.argument(max_length, "integer", "nn.KVCache", "max_length", { min = 1 })
  self.length = 0
end

local function allocate(x, length)
  local n, h, _, d = table.unpack(x.shape)
  return c.zeros(n, h, length, d, { dtype = x.dtype, device = x.device })
end

--- Appends keys and values of further positions; returns those of all positions so far. They have
--- no gradient.
---@param k Tensor [N, H, T, D]
---@param v Tensor [N, H, T, D]
function KVCache:append(k, v)
  if split_sequence.is_split() then
    errors.blame("nn.KVCache: a cache needs whole sequences: generate outside of "
      .. "lt.parallel.context_parallel")
  end
  local _ <close> = c.no_grad()
  local from, count = self.length, k.shape[3]
  if from + count > self.max_length then
    errors.blame("nn.KVCache: %d positions are too many for max_length = %d", from + count,
      self.max_length)
  end
  if not self.k or from == 0 and k.shape[1] ~= self.k.shape[1] then
    self.k, self.v = allocate(k, self.max_length), allocate(v, self.max_length)
  end
  if k.shape[1] ~= self.k.shape[1] then
    errors.blame("nn.KVCache: the cache has a batch of %d, got one of %d; reset() clears it",
      self.k.shape[1], k.shape[1])
  end
  self.k:narrow(3, from + 1, count):copy_(k)
  self.v:narrow(3, from + 1, count):copy_(v)
  self.length = from + count
  return self.k:narrow(3, 1, self.length), self.v:narrow(3, 1, self.length)
end

--- Selects rows of the batch by an index [M] (from 0), for the beams of a beam search.
function KVCache:reorder(index)
  if not self.k then return end
  local _ <close> = c.no_grad()
  for _, name in ipairs { "k", "v" } do
    local kept <const> = self[name]:narrow(3, 1, self.length):index_select(1, index)
    if kept.shape[1] ~= self[name].shape[1] then self[name] = allocate(kept, self.max_length) end
    self[name]:narrow(3, 1, self.length):copy_(kept)
  end
end

--- Clears it. Its memory is kept for the same batch size.
function KVCache:reset()
  self.length = 0
end

return KVCache
