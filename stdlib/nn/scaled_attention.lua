-- stdlib/nn/scaled_attention.lua: scaled dot product attention of all heads, or of some of a
-- module's, which other ranks have the rest of (lt.parallel.AttentionParallel).
-- N batch, H heads, T queries, S keys, D features of a head.
--
-- Dropout of the weights of some heads is what it would be among all: the mask of all is drawn, so
-- that the weights are written out, [N, all heads, T, S]. Without dropout they never are.
local attention_weights = require "ltrain.nn.attention_weights"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local part_dropout = require "ltrain.nn.part_dropout"
local split_sequence = require "ltrain.core.split_sequence"

-- Keys or values of as many heads as queries have.
local function for_heads(x, q)
  local times = q.shape[2] // x.shape[2]
  return times == 1 and x or x:repeat_interleave(times, 2)
end

--- See lt.scaled_dot_product_attention; of `options` causal, dropout_p, enable_gqa. `range`: nil,
--- or { from =, of = }, which heads these are, from 0, of how many.
---@param q Tensor [N, H, T, D]
---@param k Tensor [N, H or fewer, S, D]
---@param v Tensor [N, H or fewer, S, D] -> [N, H, T, D]
return function(q, k, v, mask, options, range)
  local p = options.dropout_p or 0
  if not range or p == 0 then return c.scaled_dot_product_attention(q, k, v, mask, options) end
  if split_sequence.is_split() then
    errors.blame("attention: dropout of the weights of some heads needs whole sequences: set the "
      .. "dropout of attention to 0, or context_parallel_size to 1")
  end
  local weights = attention_weights(q, for_heads(k, q), mask, options.causal)
  return part_dropout(weights, p, 2, range.from, range.of):matmul(for_heads(v, q))
end
