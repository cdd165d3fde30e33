--- stdlib/dist/Adasum.lua: adaptive summation of gradients (Maleki et al. 2020, Horovod's Adasum).
--
-- The gradients a and b that two ranks have of a parameter become
--   (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b:
-- their sum where they are orthogonal, their mean where they are equal, so that the learning rate
-- of one rank fits any number. Ranks combine in pairs, as the leaves of a binary tree: first those
-- whose numbers differ by 1, then by 2, 4, ...
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"

local Adasum = class.extend(nil, "Adasum")

--- Adasum(), of all ranks, which all call it. `who` begins error messages.
function Adasum:init(who)
  local ranks, rank = c.dist.size(), c.dist.rank()
  if ranks & (ranks - 1) ~= 0 then
    errors.blame("%s: adasum combines ranks in pairs: their number must be a power of two: got %d",
      who, ranks)
  end
  self.pairs = {}
  local distance = 1
  while distance < ranks do
    self.pairs[#self.pairs + 1] = collectives.split(rank & ~distance)
    distance = distance * 2
  end
end

-- 1 - a.b / (2 a.a); 1 where a is zero.
local function share(product, square)
  local factor = 1 - product / (2 * square)
  return c.where(square:gt(0), factor, c.ones_like(factor))
end

-- What two gradients [n] become.
local function combine(a, b)
  local kind = a.dtype == "f64" and "f64" or "f32"
  local x, y = a:to(kind), b:to(kind)
  local product = (x * y):sum():to "f64"
  local of_x, of_y = share(product, x:square():sum():to "f64"), share(product,
    y:square():sum():to "f64")
  return (x * of_x:to(kind) + y * of_y:to(kind)):to(a.dtype)
end

--- The combination of all ranks' rows [n], in which parameters have `sizes` elements, one after the
--- other. All ranks call it.
function Adasum:combine(row, sizes)
  local _ <close> = c.no_grad()
  for _, pair in ipairs(self.pairs) do
    local both, parts, at = pair:all_gather(row), {}, 1
    for i, n in ipairs(sizes) do
      parts[i] = combine(both[1]:narrow(1, at, n), both[2]:narrow(1, at, n))
      at = at + n
    end
    row = c.cat(parts, 1)
  end
  return row
end

return Adasum
