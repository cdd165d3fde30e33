-- stdlib/nn/position_encodings.lua: helpers of layers of positions: angles of sinusoids, and a
-- range of a table's rows.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local split_sequence = require "ltrain.core.split_sequence"

local position_encodings = {}

--- t / base^(2i / width), of positions t and pairs of features i: [length, width / 2].
function position_encodings.angles(width, length, base, name)
  config.argument(width, "integer", name, "features", { min = 2 })
  if width % 2 ~= 0 then
    errors.blame("%s: needs an even number of features: got %d", name, width)
  end
  local i = c.arange(0, width, 2, { dtype = "f64" })
  local t = c.arange(0, length, { dtype = "f64" }):reshape(length, 1)
  return (t * (i * (-math.log(base) / width)):exp()):to "f32"
end

--- The rows of a table for `count` positions from `offset` (0); of a sequence that is split among
--- ranks for those of this rank.
function position_encodings.part(table, count, offset, name)
  local rows = {}
  for i, chunk in ipairs(split_sequence.chunks(count, offset)) do
    local stop = chunk.from + chunk.count
    if stop > table.shape[1] then
      errors.blame("%s: %d positions are too many for max_length = %d", name, stop,
        table.shape[1])
    end
    rows[i] = table:narrow(1, chunk.from + 1, chunk.count)
  end
  return #rows == 1 and rows[1] or c.cat(rows)
end

return position_encodings
