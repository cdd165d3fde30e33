--- stdlib/apps/views/show.lua: prints a matrix or an image as blocks in the terminal.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local pixel_text = require "ltrain.apps.views.pixel_text"
local terminal = require "ltrain.apps.views.terminal"

local ROWS <const> = 32 -- of text at most

local OPTIONS <const> = {
  min = { type = "number", doc = "the value that is black, or the lowest colour" },
  max = { type = "number", doc = "the value that is white, or the highest colour" },
  width = { type = "integer", min = 2, doc = "columns; by default those of the terminal" },
}

-- x as planes [C, H, W], and whether it is an image.
local function planes_of(x)
  if x.ndim == 3 and (x.shape[1] == 1 or x.shape[1] == 3 or x.shape[1] == 4) then return x, true end
  if x.ndim == 2 then return x:unsqueeze(1), false end
  if x.ndim < 2 then return x:reshape(1, 1, -1), false end
  errors.blame("show: needs a vector, a matrix [H, W] or an image [C, H, W] of 1, 3 or 4 channels: "
    .. "got %s: show one of them, x[1]:show()%s", errors.show(x),
    x.ndim == 4 and ", or all of them, lt.image.grid(x):show()" or "")
end

-- The lowest and the highest finite value (nil: there is none), and how many are not finite.
local function range_of(x)
  local finite = x:isfinite()
  local count = x:numel() - finite:sum():item()
  if count == x:numel() then return nil, nil, count end
  local some = count == 0 and x or x:flatten()[finite:flatten()]
  return some:min():item(), some:max():item(), count
end

-- Which values are black and white.
local function limits_of(x, is_image, low, high, o)
  if is_image and x.dtype == "u8" then
    low, high = 0, 255
  elseif is_image and low and low >= 0 and high <= 1 then
    low, high = 0, 1
  end
  low, high = o.min or low or 0, o.max or high or 1
  return low, high > low and high or low + 1
end

-- Planes of at most `width` x `most`: each pixel the mean of what it stands for.
local function shrink(planes, is_image, width, most)
  local height, wide = planes.shape[2], planes.shape[3]
  local by_x, by_y = math.max(1, wide / width), math.max(1, height / most)
  if is_image then by_x, by_y = math.max(by_x, by_y), math.max(by_x, by_y) end
  if by_x == 1 and by_y == 1 then return planes end
  return c.adaptive_avg_pool2d(planes,
    { math.max(1, (height / by_y + 0.01) // 1 | 0), math.max(1, (wide / by_x + 0.01) // 1 | 0) })
end

local function pixel_of(lists, y, x, low, high)
  local pixel = {}
  for k = 1, #lists == 1 and 1 or 3 do
    local value = lists[k][y][x]
    local mark = pixel_text.mark(value)
    if mark and (not pixel.mark or mark == "nan") then pixel.mark = mark end
    pixel[k] = math.min(1, math.max(0, (value / 2 - low / 2) / (high / 2 - low / 2)))
  end
  return pixel
end

local function pixels_of(planes, low, high)
  local lists, rows = planes:tolist(), {}
  for y = 1, planes.shape[2] do
    rows[y] = {}
    for x = 1, planes.shape[3] do rows[y][x] = pixel_of(lists, y, x, low, high) end
  end
  return rows
end

-- ", 3 not finite (nan is ??)" of what the pixels have.
local function said_of_marks(pixels, count, in_colours)
  if count == 0 then return "" end
  local seen, parts = {}, {}
  for _, row in ipairs(pixels) do
    for _, pixel in ipairs(row) do if pixel.mark then seen[pixel.mark] = true end end
  end
  for _, mark in ipairs { "nan", "inf", "-inf" } do
    if seen[mark] then
      parts[#parts + 1] = ("%s is %s"):format(mark, pixel_text.marks[mark][in_colours and 1 or 2])
    end
  end
  return (", %d not finite (%s)"):format(count, table.concat(parts, ", "))
end

-- The rows of text.
local function rows_of(x, o)
  local at = terminal.look()
  at.colours = at.utf8 and at.colours or nil
  local planes, is_image = planes_of(x)
  planes = planes:to(x.dtype == "f64" and "f64" or "f32")
  local title = ("%s %s"):format(errors.show_shape(x), x.dtype)
  if x:numel() == 0 then return { title .. ", empty" } end
  local low, high, count = range_of(planes)
  if low then title = ("%s, %.4g to %.4g"):format(title, low, high) end
  local width = o.width or at.width
  local small = shrink(planes, is_image, at.colours and width or math.max(1, width // 2),
    at.colours and 2 * ROWS or ROWS)
  if small ~= planes and not is_image then low, high = range_of(small) end
  local pixels = pixels_of(small, limits_of(x, is_image, low, high, o))
  title = title .. said_of_marks(pixels, count, at.colours)
  if #pixels ~= planes.shape[2] or #pixels[1] ~= planes.shape[3] then
    title = ("%s, shown as %d x %d means"):format(title, #pixels, #pixels[1])
  end
  local rows = pixel_text.rows(pixels, { colours = at.colours, utf8 = at.utf8, grey = is_image })
  table.insert(rows, 1, title)
  return rows
end

--- Prints a vector, a matrix [H, W] or an image [C, H, W] of 1, 3 or 4 channels (the fourth is not
--- shown) as blocks, below a line with its shape, dtype and range. On a terminal in colours, of 24
--- bits where COLORTERM says so; through a pipe as shades. What is larger than the terminal is
--- smaller there, by means; nan and inf have marks of their own, also in a mean. Options: `min` and
--- `max`, which values are the darkest and the lightest (by default the lowest and the highest; of
--- images 0 and 255 for u8, 0 and 1 where all values are between them), and `width` in columns.
--- Returns nothing.
---@param x Tensor [N], [H, W] or [C, H, W]
---@param options table
return function(x, options)
  if not c.is_tensor(x) then errors.blame("show: needs a tensor: got %s", errors.show(x)) end
  local o = config.check(options, OPTIONS, "show")
  local _ <close> = c.no_grad()
  console.past(print, table.concat(rows_of(x:detach():cpu(), o), "\n"))
end
