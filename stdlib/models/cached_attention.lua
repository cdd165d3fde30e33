-- stdlib/models/cached_attention.lua: causal attention of language models that generate: each
-- position sees those up to its own, which a cache may hold.
-- N batch, H heads, T queries, S positions, D features of a head.

local c = require "ltrain.c"
local scaled_attention = require "ltrain.nn.scaled_attention"

--- The queries are the last T of S positions; a cache adds the keys and values that it holds.
--- `range`: see nn.scaled_attention.
---@param q Tensor [N, H, T, D]
---@param k Tensor [N, H or fewer, T, D]
---@param v Tensor [N, H or fewer, T, D] -> [N, T, H * D]
return function(q, k, v, cache, dropout, range)
  local options = { causal = true, dropout_p = dropout, enable_gqa = q.shape[2] ~= k.shape[2] }
  local mask
  if cache then
    k, v = cache:append(k, v)
    local count, total = q.shape[3], k.shape[3]
    if total > count then -- of one query all positions are its past
      options.causal = false
      mask = count > 1
        and c.ones(count, total, { dtype = "bool", device = q.device }):tril(total - count) or nil
    end
  end
  local y = scaled_attention(q, k, v, mask, options, range)
  return y:transpose(2, 3):flatten(3)
end
