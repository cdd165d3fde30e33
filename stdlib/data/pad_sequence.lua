-- stdlib/data/pad_sequence.lua: pads sequences of different lengths to one tensor.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = config.signature {
  { "batch_first", type = "boolean", default = true,
    doc = "as in PyTorch; false is an error: use x:transpose(1, 2)" },
  { "padding_value", type = "number", default = 0, doc = "value of the padding" },
  { "padding_side", type = "string", default = "right", choices = { "right", "left" } },
  { "length", type = "integer", min = 1, doc = "length of the result; by default that of the "
    .. "longest sequence" },
}

--- Pads a list of tensors [T_i, ...] with `padding_value` to one tensor [N, T, ...]; also returns
--- the lengths, i64 [N]. A sequence longer than `length` is an error.
---@param sequences table
return function(sequences, ...)
  local o <const> = config.arguments("pad_sequence", OPTIONS, ...)
  if not o.batch_first then
    errors.blame("pad_sequence: batch_first = false: layers have the batch first; write "
      .. "x:transpose(1, 2) of the result")
  end
  if type(sequences) ~= "table" or #sequences == 0 then
    errors.blame("pad_sequence: needs a list of tensors, got %s", errors.show(sequences))
  end
  local first <const>, lengths, longest = sequences[1], {}, 0
  for k, x in ipairs(sequences) do
    if not c.is_tensor(x) or x.ndim == 0 then
      errors.blame("pad_sequence: sequence %d must be a tensor [T, ...], got %s", k, errors.show(x))
    end
    lengths[k] = x.shape[1]
    longest = math.max(longest, lengths[k])
  end
  if o.length and longest > o.length then
    errors.blame("pad_sequence: a sequence of %d is longer than length = %d", longest, o.length)
  end
  local shape <const> = table.move(first.shape, 1, first.ndim, 2, { #sequences })
  shape[2] = o.length or longest
  local out <const> = c.full(shape, o.padding_value, { dtype = first.dtype, device = first.device })
  for k, x in ipairs(sequences) do
    local begin <const> = o.padding_side == "left" and shape[2] - lengths[k] + 1 or 1
    if lengths[k] > 0 then out[k]:narrow(1, begin, lengths[k]):copy_(x) end
  end
  return out, c.tensor(lengths, { dtype = "i64" })
end
