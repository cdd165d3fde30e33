--- stdlib/parallel/divide_sequences.lua: the parts of a batch's sequences for one rank.
local c = require "ltrain.c"
local split = require "ltrain.parallel.split_sequence"
local tree = require "ltrain.core.tree"

--- The batch with this rank's part of the sequences: of tensors that have a dim `dim`, those that
--- are longest along it. Others, such as a label of each sample, stay.
return function(batch, dim, group)
  local longest = 0
  tree.each(batch, function(leaf)
    if c.is_tensor(leaf) and leaf.ndim >= dim then longest = math.max(longest, leaf.shape[dim]) end
  end)
  return tree.map(batch, function(leaf)
    if not c.is_tensor(leaf) or leaf.ndim < dim or leaf.shape[dim] ~= longest then return leaf end
    return split.split_sequence(leaf, dim, { group = group })
  end)
end
