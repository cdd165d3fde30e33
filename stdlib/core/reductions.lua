-- stdlib/core/reductions.lua: reductions of partial results over parts of the data or over ranks.

local c = require "ltrain.c"

-- Two halves by the name of the way: numbers and tensors by "sum", "min" and "max" (a NaN wins),
-- lists by "cat".
local reductions = {
  sum = function(a, b) return a + b end,
  min = function(a, b)
    if type(a) == "number" then return a ~= a and a or b ~= b and b or math.min(a, b) end
    return c.minimum(a, b)
  end,
  max = function(a, b)
    if type(a) == "number" then return a ~= a and a or b ~= b and b or math.max(a, b) end
    return c.maximum(a, b)
  end,
  cat = function(a, b) return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})) end,
}

--- at(lo), .., at(hi - 1), reduced two by two: T(lo, hi) = T(lo, m) + T(m, hi), m = lo + the
--- largest power of two below hi - lo. Ranks, and slices of a batch, are added in this tree, as in
--- runtime/comm/shm_reduce.c: where bits must be equal, every sum of parts goes this way.
function reductions.tree_reduce(lo, hi, at, reduce)
  if hi - lo == 1 then return at(lo) end
  local half = 1
  while 2 * half < hi - lo do half = 2 * half end
  return reduce(reductions.tree_reduce(lo, lo + half, at, reduce),
    reductions.tree_reduce(lo + half, hi, at, reduce))
end

return reductions
