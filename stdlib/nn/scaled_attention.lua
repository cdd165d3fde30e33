-- stdlib/nn/scaled_attention.lua: scaled dot product attention of all heads, or of some of a
-- module's, which other ranks have the rest of (lt.parallel.AttentionParallel).
-- N batch, H heads, T queries, S keys, D features of a head.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local split_sequence = require "ltrain.core.split_sequence"

--- See lt.scaled_dot_product_attention; of `options`, a table of this call, causal, dropout_p,
--- enable_gqa. `range`: nil, or { from =, of = }, which heads these are, from 0, of how many: their
--- dropout is what it would be among all.
---@param q Tensor [N, H, T, D]
---@param k Tensor [N, H or fewer, S, D]
---@param v Tensor [N, H or fewer, S, D] -> [N, H, T, D]
return function(q, k, v, mask, options, range)
  if range and (options.dropout_p or 0) > 0 then
    if split_sequence.is_split() then
      errors.blame("attention: dropout of the weights of some heads needs whole sequences: set the "
        .. "dropout of attention to 0, or context_parallel_size to 1")
    end
    options.first_head, options.all_heads = range.from, range.of
  end
  return c.scaled_dot_product_attention(q, k, v, mask, options)
end
