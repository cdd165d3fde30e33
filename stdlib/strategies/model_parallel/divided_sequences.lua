--- stdlib/strategies/model_parallel/divided_sequences.lua: context parallelism of
--- ModelParallelStrategy: batches get this rank's part of their sequences, and steps run in a scope
--- of lt.parallel.context_parallel.
--
-- Predictions are of whole sequences: each rank of a replica has them.
local c = require "ltrain.c"
local context_parallel = require("ltrain.parallel.context_parallel").context_parallel
local split = require "ltrain.parallel.split_sequence"
local tree = require "ltrain.core.tree"

local divided_sequences = {}

local function divides(strategy)
  return strategy.context_parallel_size > 1 and not strategy.module.trainer.predicting
end

local function group_of(strategy) return strategy.device_mesh:group "context_parallel" end

--- The batch with this rank's part of the sequences: of tensors that have the strategy's
--- sequence_dim, those that are longest along it. Others, such as a label of each sample, stay.
function divided_sequences.divide(strategy, batch)
  if not divides(strategy) then return batch end
  local dim, longest = strategy.sequence_dim, 0
  tree.each(batch, function(leaf)
    if c.is_tensor(leaf) and leaf.ndim >= dim then longest = math.max(longest, leaf.shape[dim]) end
  end)
  return tree.map(batch, function(leaf)
    if not c.is_tensor(leaf) or leaf.ndim < dim or leaf.shape[dim] ~= longest then return leaf end
    return split.split_sequence(leaf, dim, { group = group_of(strategy) })
  end)
end

--- `outer` with a scope in it in which attention and positions are those of divided sequences. Of
--- backward too: segments that are recomputed run forward in it.
function divided_sequences.scope(strategy, outer)
  if not divides(strategy) then return outer end
  local scope = context_parallel(group_of(strategy),
    { attention = strategy.context_parallel_attention })
  if outer == nil then return scope end
  return setmetatable({}, { __close = function()
    local _ <close> = outer
    local _ <close> = scope
  end })
end

return divided_sequences
