-- stdlib/data/unpad_sequence.lua: the sequences of a padded tensor.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

--- The list of sequences [T_i, ...] that pad_sequence has made `x` of, by their lengths, a tensor
--- [N] or a list.
---@param x Tensor [N, T, ...]
return function(x, lengths, batch_first)
  arguments.tensor(x, "unpad_sequence", "x")
  if batch_first == false then
    errors.blame("unpad_sequence: batch_first = false: write x:transpose(1, 2) for x")
  end
  local list <const> = c.is_tensor(lengths) and lengths:tolist() or lengths
  if type(list) ~= "table" or #list ~= x.shape[1] then
    errors.blame("unpad_sequence: needs a length for each of the %d sequences: got %s", x.shape[1],
      errors.show(lengths))
  end
  local sequences = {}
  for k, n in ipairs(list) do
    if math.type(n) ~= "integer" or n < 0 or n > x.shape[2] then
      errors.blame("unpad_sequence: length %d must be in 0..%d: got %s", k, x.shape[2],
        errors.show(n))
    end
    sequences[k] = x[k]:narrow(1, 1, n)
  end
  return sequences
end
