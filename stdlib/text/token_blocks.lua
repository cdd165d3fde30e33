-- stdlib/text/token_blocks.lua: splits a stream of tokens into samples for a language model.

local TensorDataset = require "ltrain.data.TensorDataset"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

--- Returns a data set of consecutive blocks of ids [n]: `(ids, next_ids)`, each [block_size], the
--- second shifted by one token. It shares memory with the ids, also with those of a mapped file; an
--- incomplete block at the end is omitted.
---@param ids Tensor [n]
---@param block_size integer
return function(ids, block_size)
  local where <const> = "text.token_blocks"
  config.argument(block_size, "integer", where, "block_size", { min = 1 })
  if not c.is_tensor(ids) or ids.ndim ~= 1 then
    errors.blame("%s: ids must be a tensor [n]: got %s", where, errors.show(ids))
  end
  local n <const> = (ids.shape[1] - 1) // block_size
  if n < 1 then
    errors.blame("%s: %d ids are fewer than a block of %d and its next token", where, ids.shape[1],
      block_size)
  end
  local function blocks(from)
    return ids:narrow(1, from, n * block_size):reshape(n, block_size)
  end
  return TensorDataset(blocks(1), blocks(2))
end
