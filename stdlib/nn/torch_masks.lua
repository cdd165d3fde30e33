-- stdlib/nn/torch_masks.lua: refuses PyTorch's names of attention masks, and says what to write
-- instead: there a bool mask is true where a position takes no part.

local MASK <const> = "mask, which is true where a key takes part (a floating one is added): "
  .. "mask = %s:logical_not()"
local KEYS <const> = "%s, which is true where a key takes part: %s = padding:logical_not()"

--- The rows of a call, and those that say what to give in place of PyTorch's. `memory`: whether it
--- attends to a memory.
return function(rows, memory)
  for _, name in ipairs { "attn_mask", "src_mask", "tgt_mask" } do
    rows[name] = { instead = MASK:format(name) }
  end
  for _, name in ipairs { "key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask" } do
    rows[name] = { instead = KEYS:format("key_mask", "key_mask") }
  end
  if memory then
    rows.memory_key_padding_mask =
      { instead = KEYS:format("memory_key_mask", "memory_key_mask") }
  end
  return rows
end
