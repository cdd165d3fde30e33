-- stdlib/ops/affine_grid.lua: lt.affine_grid, the sampling positions of an affine map, for
-- grid_sample. N batch, D depth, H height, W width.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local call_form = require "ltrain.core.call_form"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = {
  align_corners = { type = "boolean", default = false,
    doc = "-1 and 1 are the centers of the outermost pixels instead of their edges" },
}

local who <const> = "affine_grid"

-- n positions from -1 to 1.
local function positions(n, align_corners, theta)
  local list = {}
  for k = 1, n do
    if align_corners then
      list[k] = n > 1 and 2 * (k - 1) / (n - 1) - 1 or 0
    else
      list[k] = (2 * k - 1) / n - 1
    end
  end
  return c.tensor(list, { dtype = theta.dtype, device = theta.device })
end

local function check(theta, size)
  arguments.tensor(theta, who, "theta")
  arguments.wide(theta, who, "theta")
  config.argument(size, "table", who, "size", { min = 1 })
  local d <const> = #size - 2
  if d ~= 2 and d ~= 3 then
    errors.blame("%s: size must be {N, C, H, W} or {N, C, D, H, W}: got %d numbers", who, #size)
  end
  for _, n in ipairs(size) do config.argument(n, "integer", who, "size", { min = 1 }) end
  if theta.ndim ~= 3 or theta.shape[1] ~= size[1] or theta.shape[2] ~= d
    or theta.shape[3] ~= d + 1 then
    errors.blame("%s: theta must be [%d, %d, %d] for this size: got %s", who, size[1], d, d + 1,
      errors.show_shape(theta))
  end
  return d
end

--- The sampling grid [N, H, W, 2] (or [N, D, H, W, 3]), from -1 to 1, x first, of the affine
--- transformations theta [N, 2, 3] (or [N, 3, 4]) for images of `size`, {N, C, H, W} (or {N, C, D,
--- H, W}): for grid_sample.
return call_form.method(function(theta, size, options)
  local d <const> = check(theta, size)
  local o <const> = config.check(options, OPTIONS, who)
  local lead = {} -- theta as [N, 1, ..., d, d + 1]
  for k = 1, d do lead[k] = 1 end
  local matrix <const> = theta:reshape { size[1], table.unpack(table.move({ d, d + 1 }, 1, 2,
    d + 1, lead)) }
  local grid = matrix:select(-1, d + 1)
  for axis = 1, d do -- x is the last dim
    local shape = {}
    for k = 1, d + 2 do shape[k] = 1 end
    shape[d + 2 - axis] = size[d + 3 - axis]
    local along <const> = positions(size[d + 3 - axis], o.align_corners, theta):reshape(shape)
    grid = grid + matrix:select(-1, axis) * along
  end
  return grid
end, who, 2, "align_corners")
