-- stdlib/ops/grid_sample.lua: lt.grid_sample, the values of images at given positions.
-- N batch, C channels, P positions.
--
-- Along each dim a position has taps: elements and their weights. The result is the sum over all
-- combinations of taps.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local who <const> = "grid_sample"

local OPTIONS <const> = {
  mode = { type = "string", default = "bilinear", choices = { "bilinear", "nearest", "bicubic" } },
  padding_mode = { type = "string", default = "zeros",
    choices = { "zeros", "border", "reflection" },
    doc = "values outside of the image: zeros, its border, or its reflection" },
  align_corners = { type = "boolean", default = false,
    doc = "-1 and 1 are the centers of the outermost pixels instead of their edges" },
}

-- Positions within 0..n - 1: the image continues reflected at its border.
local function reflected(at, n, align_corners)
  local low <const> = align_corners and 0 or -0.5
  local span <const> = align_corners and n - 1 or n
  if span == 0 then return at * 0 end
  return (span - ((at - low):remainder(2 * span) - span):abs() + low):clamp(0, n - 1)
end

local function inside(at, n, o)
  if o.padding_mode == "border" then return at:clamp(0, n - 1) end
  return o.padding_mode == "reflection" and reflected(at, n, o.align_corners) or at
end

-- Positions of elements as ids that exist, and weights, which are 0 (nil: 1) for what does not.
local function tap(at, weight, n, o)
  local ids <const> = at:to("i64"):clamp(0, n - 1)
  if o.padding_mode == "zeros" then
    local outside <const> = at:lt(0) | at:gt(n - 1)
    weight = (weight or c.ones_like(at)):masked_fill(outside, 0)
  end
  return { ids = ids, weight = weight }
end

-- Keys' weights with a = -0.75 of an element t away: within 1, and from 1 to 2.
local function near(t) return (1.25 * t - 2.25) * t * t + 1 end
local function far(t) return ((-0.75 * t + 3.75) * t - 6) * t + 3 end

local TAPS <const> = {
  nearest = function(at, n, o) return { tap(inside(at, n, o):detach():round(), nil, n, o) } end,
  bilinear = function(at, n, o)
    at = inside(at, n, o)
    local first <const> = at:detach():floor()
    local part <const> = at - first
    return { tap(first, 1 - part, n, o), tap(first + 1, part, n, o) }
  end,
  bicubic = function(at, n, o) -- what lies outside is looked up for each element
    local first <const> = at:detach():floor()
    local t <const>, taps = at - first, {}
    local weights <const> = { far(t + 1), near(t), near(1 - t), far(2 - t) }
    for k, weight in ipairs(weights) do
      taps[k] = tap(inside(first + (k - 2), n, o), weight, n, o)
    end
    return taps
  end,
}

-- The grid's numbers for one dim as positions from 0 to n - 1.
local function positions(grid, axis, n, align_corners)
  local at <const> = grid:select(-1, axis):reshape { grid.shape[1], 1, -1 } -- [N, 1, P]
  if align_corners then return (at + 1) * ((n - 1) / 2) end
  return ((at + 1) * n - 1) * 0.5
end

-- The sum over the taps of dims k, k + 1, ...; ids and weight are those of the dims before.
local function gathered(flat, sizes, taps, k, ids, weight)
  if k > #taps then
    local y <const> = flat:gather(3, ids:expand(flat.shape[1], flat.shape[2], ids.shape[3]))
    return weight and y * weight or y
  end
  local sum
  for _, one in ipairs(taps[k]) do
    local at <const> = ids and ids * sizes[k] + one.ids or one.ids
    local product = weight or one.weight
    if weight and one.weight then product = weight * one.weight end
    local part <const> = gathered(flat, sizes, taps, k + 1, at, product)
    sum = sum and sum + part or part
  end
  return sum
end

local function check(x, grid, o)
  arguments.tensor(x, who, "x")
  arguments.tensor(grid, who, "grid")
  local d <const> = x.ndim - 2
  if d ~= 2 and d ~= 3 or grid.ndim ~= x.ndim or grid.shape[grid.ndim] ~= d
    or grid.shape[1] ~= x.shape[1] then
    errors.blame("%s: needs x [N, C, H, W] with grid [N, H', W', 2], or x [N, C, D, H, W] with "
      .. "grid [N, D', H', W', 3]: got %s and %s", who, errors.show_shape(x),
      errors.show_shape(grid))
  end
  if x.dtype ~= grid.dtype then
    errors.blame("%s: x and grid must have one dtype: got %s and %s", who, x.dtype, grid.dtype)
  end
  if o.mode == "bicubic" and d == 3 then
    errors.blame("%s: mode 'bicubic' is for images [N, C, H, W]: got %s", who, errors.show_shape(x))
  end
  for k = 3, x.ndim do
    if x.shape[k] == 0 then errors.blame("%s: %s is empty", who, errors.show_shape(x)) end
  end
end

--- Samples x [N, C, H, W] at the positions grid [N, H', W', 2], as [N, C, H', W']: x first, from -1
--- (left, top) to 1; volumes [N, C, D, H, W] with grid [N, D', H', W', 3], where "bilinear" is
--- trilinear.
return call_form.method(function(x, grid, options)
  local o <const> = config.check(options, OPTIONS, who)
  check(x, grid, o)
  local shape <const>, d = x.shape, x.ndim - 2
  local sizes <const>, taps, result = {}, {}, { shape[1], shape[2] }
  local wide <const> = arguments.wide(grid, who, "grid")
  for k = 1, d do
    sizes[k], result[k + 2] = shape[k + 2], grid.shape[k + 1]
    local at <const> = positions(wide, d + 1 - k, sizes[k], o.align_corners)
    taps[k] = TAPS[o.mode](at, sizes[k], o)
  end
  local flat <const> = arguments.wide(x, who, "x"):flatten { start_dim = 3, end_dim = x.ndim }
  local y <const> = gathered(flat, sizes, taps, 1):reshape(result):to(x.dtype)
  return y
end, who, 2, "mode padding_mode align_corners")
