-- stdlib/nn/attention_weights.lua: what attention multiplies values by, written out.
-- N batch, H heads, T queries, S keys, D features of a head.
local c = require "ltrain.c"

-- True at the keys that each of T queries may see.
local function causal_mask(q, k)
  local count, total = q.shape[3], k.shape[3]
  return c.ones(count, total, { dtype = "bool", device = q.device }):tril(total - count)
end

--- softmax(q k^T / sqrt(D) + mask) over the keys; where a bool mask has none, zeros.
---@param q Tensor [N, H, T, D]
---@param k Tensor [N, H, S, D] -> [N, H, T, S]
return function(q, k, mask, causal)
  local scores = q:matmul(k:transpose(3, 4)) / math.sqrt(q.shape[4])
  if causal then
    local seen = causal_mask(q, k)
    mask = not mask and seen or mask.dtype == "bool" and mask:logical_and(seen)
      or mask:masked_fill(seen:logical_not(), -math.huge)
  end
  if mask and mask.dtype == "bool" then
    local none = mask:logical_not()
    return scores:masked_fill(none, -math.huge):softmax(4):masked_fill(none, 0)
  end
  return (mask and scores + mask or scores):softmax(4)
end
