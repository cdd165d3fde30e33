-- stdlib/ops/resize_nearest.lua: nearest-neighbour interpolation along one dim.

local c = require "ltrain.c"

local resize_nearest = {}

-- Positions are computed in f32, as PyTorch does: a quotient may fall on either side of a whole.
local function single(x) return (string.unpack("f", string.pack("f", x))) end

-- The input of each of m outputs, from 0. Of images that keep a size or double it PyTorch does not
-- look at the factor.
local function inputs_of(n, m, scale, is_exact, is_image)
  local list <const>, step = {}, single(scale and 1 / scale or n / m)
  if is_image and not is_exact and (m == n or m == 2 * n) then step = n / m end
  for o = 0, m - 1 do
    local at <const> = single((is_exact and o + 0.5 or o) * step)
    list[o + 1] = math.min(math.floor(at), n - 1)
  end
  return list
end

-- How often each input in turn is repeated; nil where that differs.
local function times_of(list, n)
  local times <const> = #list // n
  if times * n ~= #list then return nil end
  for o, i in ipairs(list) do
    if i ~= (o - 1) // times then return nil end
  end
  return times
end

--- x with m elements along `dim`; `is_exact`: those nearest to the centres of the outputs.
function resize_nearest.along(x, dim, m, scale, is_exact)
  local n <const> = x.shape[dim]
  local list <const> = inputs_of(n, m, scale, is_exact, x.ndim == 4)
  local times <const> = times_of(list, n)
  if times == 1 then return x end
  if not times then
    return x:index_select(dim, c.tensor(list, { dtype = "i64", device = x.device }))
  end
  local copies, shape = {}, table.move(x.shape, 1, x.ndim, 1, {})
  for k = 1, times do copies[k] = x end
  shape[dim] = m
  return c.stack(copies, dim + 1):reshape(shape)
end

return resize_nearest
