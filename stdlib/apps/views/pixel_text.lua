--- stdlib/apps/views/pixel_text.lua: rows of pixels as text: two coloured pixels a letter (half
--- blocks), or letters of several shades.
local terminal = require "ltrain.apps.views.terminal"

local pixel_text = {}

local SHADES <const> = { " ", "░", "▒", "▓", "█" }
local PLAIN <const> = { " ", ".", ":", "-", "=", "+", "*", "#", "%", "@" }
-- Of matrices, from the lowest value to the highest: viridis.
local SCALE <const> = { { 68, 1, 84 }, { 59, 82, 139 }, { 33, 145, 140 }, { 94, 201, 98 },
                        { 253, 231, 37 } }
-- Values without a place between the lowest and the highest: their colours and letters.
local NAN <const>, HIGH <const>, LOW <const> = "nan", "inf", "-inf"
local MARKS <const> = {
  [NAN] = { { 255, 0, 255 }, "??" }, [HIGH] = { { 255, 64, 64 }, "^^" },
  [LOW] = { { 64, 96, 255 }, "vv" },
}

--- What is said of those that a picture has, in colours or letters.
pixel_text.marks = {
  [NAN] = { "magenta", "??" }, [HIGH] = { "red", "^^" }, [LOW] = { "blue", "vv" },
}

--- The mark of a value: "nan", "inf" or "-inf"; nil of a finite one.
function pixel_text.mark(value)
  if value ~= value then return NAN end
  return value == math.huge and HIGH or value == -math.huge and LOW or nil
end

local function scaled(share)
  local at = share * (#SCALE - 1)
  local k = math.min(#SCALE - 1, at // 1 + 1 | 0)
  local from, to, rest = SCALE[k], SCALE[k + 1], at - (k - 1)
  local colour = {}
  for i = 1, 3 do colour[i] = from[i] + (to[i] - from[i]) * rest // 1 | 0 end
  return colour
end

-- A pixel's colour: of one share a shade of grey or the scale, of three red, green and blue.
local function colour_of(pixel, o)
  if pixel.mark then return MARKS[pixel.mark][1] end
  if #pixel == 1 and not o.grey then return scaled(pixel[1]) end
  local colour = {}
  for i = 1, 3 do colour[i] = ((pixel[i] or pixel[1]) * 255 + 0.5) // 1 | 0 end
  return colour
end

-- The number of a colour among the terminal's 256: a cube of 6 x 6 x 6, or 24 shades of grey.
local function number_of(colour)
  local r, g, b = table.unpack(colour)
  if math.max(r, g, b) - math.min(r, g, b) < 8 then
    local grey = ((r - 8) / 10 + 0.5) // 1 | 0
    if grey >= 0 and grey < 24 then return 232 + grey end
  end
  local function step(x) return (x / 51 + 0.5) // 1 | 0 end
  return 16 + 36 * step(r) + 6 * step(g) + step(b)
end

local function code(colour, front, depth)
  if depth == "24bit" then
    return ("%d;2;%d;%d;%d"):format(front and 38 or 48, table.unpack(colour))
  end
  return ("%d;5;%d"):format(front and 38 or 48, number_of(colour))
end

-- Two rows of pixels in one of letters: the upper half of each has the colour of the letter.
local function half_blocks(upper, lower, o)
  local parts, before = {}, nil
  for x, pixel in ipairs(upper) do
    local colours = code(colour_of(pixel, o), true, o.colours)
    colours = colours .. ";" .. (lower and code(colour_of(lower[x], o), false, o.colours) or "49")
    parts[#parts + 1] = (colours ~= before and ("\27[%sm"):format(colours) or "") .. "▀"
    before = colours
  end
  return table.concat(parts) .. "\27[0m"
end

-- How light a pixel is, from 0 to 1.
local function light(pixel)
  if #pixel == 1 then return pixel[1] end
  return 0.299 * pixel[1] + 0.587 * pixel[2] + 0.114 * pixel[3]
end

--- A text on a pixel's colour, in black or white.
function pixel_text.on_colour(text, pixel, depth)
  local colour = colour_of(pixel, {})
  local is_light = light(colour) > 128
  return ("\27[%s;%sm%s\27[0m"):format(code(colour, false, depth),
    code(is_light and { 0, 0, 0 } or { 255, 255, 255 }, true, depth), text)
end

--- Rows of text of rows of pixels: lists of shares from 0 to 1, one (a matrix, grey with o.grey) or
--- three (red, green, blue), or with `mark`. In colours a pixel is half a letter high, else two
--- letters wide. o: colours, "24bit", "256" or nil; utf8; grey.
function pixel_text.rows(pixels, o)
  local out = {}
  if o.colours and o.utf8 then
    for y = 1, #pixels, 2 do out[#out + 1] = half_blocks(pixels[y], pixels[y + 1], o) end
    return out
  end
  local letters <const> = o.utf8 and SHADES or PLAIN
  for y, row in ipairs(pixels) do
    local parts = {}
    for x, pixel in ipairs(row) do
      parts[x] = pixel.mark and MARKS[pixel.mark][2]
        or terminal.letter(letters, light(pixel)):rep(2)
    end
    out[y] = table.concat(parts):match "^(.-) *$"
  end
  return out
end

return pixel_text
