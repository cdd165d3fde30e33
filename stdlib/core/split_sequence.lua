--- stdlib/core/split_sequence.lua: global positions of a sequence that is split among ranks
--- (context parallelism): what layers that look up positions ask.
--
-- A rank's tensors have T / N positions, of one or two chunks of the sequence. Outside of a scope
-- of lt.parallel.context_parallel the sequence is whole.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local split_sequence = {}

local chunks_of -- fn(count) -> a list of { from =, count = } of the scope that is open; nil: none

--- Until the result is closed, `count` positions of this rank are those of fn(count): a list of
--- { from = the first, counted from 0, count = }. nil: the sequence is whole.
function split_sequence.use(fn)
  local outer = chunks_of
  chunks_of = fn
  return setmetatable({}, { __close = function() chunks_of = outer end })
end

--- The chunks of `count` positions, of which the first is number `offset` where they are whole.
function split_sequence.chunks(count, offset)
  offset = offset or 0
  if not chunks_of then return { { from = offset, count = count } } end
  if offset ~= 0 then
    errors.blame("context_parallel: positions from %d on: a split sequence has those of its rank",
      offset)
  end
  return chunks_of(count)
end

--- Returns the positions of `count` tokens: [count] i64, from `offset` where the sequence is whole.
function split_sequence.positions(count, offset, device)
  local list = {}
  for i, chunk in ipairs(split_sequence.chunks(count, offset)) do
    list[i] = c.arange(chunk.from, chunk.from + chunk.count, { device = device })
  end
  return #list == 1 and list[1] or c.cat(list)
end

--- Whether a sequence is split here.
function split_sequence.is_split() return chunks_of ~= nil end

return split_sequence
