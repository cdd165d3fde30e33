-- stdlib/core/fold.lua: the tree in which ranks, and slices of a batch, are added:
-- T(lo, hi) = T(lo, m) + T(m, hi), m = lo + the largest power of two below hi - lo. The same as in
-- runtime/comm/shm_reduce.c: where bits must be equal, every sum of parts goes this way.

--- at(lo), .., at(hi - 1), joined two by two.
local function fold(lo, hi, at, join)
  if hi - lo == 1 then return at(lo) end
  local half = 1
  while 2 * half < hi - lo do half = 2 * half end
  return join(fold(lo, lo + half, at, join), fold(lo + half, hi, at, join))
end

return fold
