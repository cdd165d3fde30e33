--- stdlib/apps/views/terminal_chart.lua: lines in a terminal, of 2 x 4 dots a letter (braille), or
--- of letters where lines could not be distinguished or the terminal has no such letters.
local axis = require "ltrain.apps.views.axis"
local errors = require "ltrain.core.errors"
local series = require "ltrain.apps.views.series"

local terminal_chart = {}

-- Which bit of a braille letter a dot is, by row and column.
local DOTS <const> = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } }
local COLOURS <const> = { 36, 33, 35, 32, 34, 31, 96, 93, 95, 92, 94, 91 } -- of escape codes
local LETTERS <const> = "abcdefghijklmnopqrstuvwxyz"

-- A canvas of width x height letters, each with dots wide x high.
local function new_canvas(width, height, wide, high)
  local cells = {}
  for row = 1, height do cells[row] = {} end
  return { cells = cells, width = width, height = height, wide = wide, high = high }
end

-- Sets a dot, counted from 0, from the lower left, for line k.
local function set(canvas, x, y, k)
  local row = canvas.height - y // canvas.high
  local column, up = x // canvas.wide + 1, canvas.high - 1 - y % canvas.high
  local cells = canvas.cells[row]
  local cell = cells[column] or { bits = 0 }
  cells[column] = cell
  cell.bits = cell.bits | DOTS[up + 1][x % canvas.wide + 1]
  cell.line = k
end

-- The dots from one to another.
local function connect(canvas, x0, y0, x1, y1, k)
  local n = math.max(math.abs(x1 - x0), math.abs(y1 - y0), 1)
  for i = 0, n do
    set(canvas, (x0 + (x1 - x0) * i / n + 0.5) // 1 | 0, (y0 + (y1 - y0) * i / n + 0.5) // 1 | 0, k)
  end
end

local function draw(canvas, line, k, x0, x1, y0, y1, is_scatter)
  local columns, rows = canvas.width * canvas.wide - 1, canvas.height * canvas.high - 1
  local before
  for _, point in ipairs(line.points) do
    local x = ((point[1] - x0) / (x1 - x0) * columns + 0.5) // 1 | 0
    local y = ((point[2] - y0) / (y1 - y0) * rows + 0.5) // 1 | 0
    if before then connect(canvas, before[1], before[2], x, y, k) else set(canvas, x, y, k) end
    before = not is_scatter and { x, y } or nil
  end
end

local function letter_of(k) return LETTERS:sub((k - 1) % #LETTERS + 1, (k - 1) % #LETTERS + 1) end

local function paint(text, k)
  return ("\27[%dm%s\27[0m"):format(COLOURS[(k - 1) % #COLOURS + 1], text)
end

-- One row of the canvas as text.
local function row_text(canvas, row, o)
  local parts, last = {}, 0
  for column = 1, canvas.width do
    local cell = canvas.cells[row][column]
    if cell then last = column end
    local text = not cell and " " or o.letters and letter_of(cell.line)
      or utf8.char(0x2800 + cell.bits)
    parts[column] = cell and o.colours and paint(text, cell.line) or text
  end
  return table.concat(parts, "", 1, last)
end

-- The numbers beside the rows, all of one width: both ends, and round ones between them.
local function labels_of(height, y0, y1, log_y)
  local labels, width, count = {}, 0, 0
  for row = 1, height do labels[row] = "" end
  labels[height], labels[1] = axis.ends(y0, y1, log_y)
  for _, tick in ipairs(axis.ticks(y0, y1, math.max(1, height // 3), log_y)) do
    local row = height - ((tick.at - y0) / (y1 - y0) * (height - 1) + 0.5) // 1 | 0
    local is_free = row > 2 and row < height - 1 and labels[row - 1] == "" and labels[row] == ""
      and labels[row + 1] == ""
    if tick.text and is_free then labels[row], count = tick.text, count + 1 end
  end
  if count == 0 then -- the middle
    labels[(height + 1) // 2] = axis.ends((y0 + y1) / 2, y1, log_y)
  end
  for row = 1, height do width = math.max(width, #labels[row]) end
  return labels, width
end

local function legend(lines, o)
  local parts = {}
  for k, line in ipairs(lines) do
    local mark = o.letters and letter_of(k) or o.colours and paint("━━", k) or "━━"
    parts[k] = ("  %s %s"):format(mark, errors.printable(line.label))
  end
  return parts
end

terminal_chart.colours = #COLOURS -- lines that these tell apart

--- The rows of a chart, a list of texts. `lines` as series.line gives them. o: width and height in
--- letters, title (without one no row is for it), x (its name), log_y, is_scatter (no lines between
--- the points), letters, colours.
function terminal_chart.rows(lines, o)
  local x0, x1, y0, y1 = series.span(lines)
  local out = { o.title ~= "" and o.title or nil }
  if not x0 then
    out[#out + 1] = "  (nothing to draw)"
    return out
  end
  local labels, beside = labels_of(o.height, y0, y1, o.log_y)
  local width = math.max(o.width - beside - 2, 10)
  local canvas = new_canvas(width, o.height, o.letters and 1 or 2, o.letters and 1 or 4)
  for k, line in ipairs(lines) do draw(canvas, line, k, x0, x1, y0, y1, o.is_scatter) end
  local bar, corner = o.letters and "|" or "│", o.letters and "+" or "└"
  for row = 1, o.height do
    out[#out + 1] = ("%" .. beside .. "s %s%s"):format(labels[row], bar, row_text(canvas, row, o))
  end
  local left, right = axis.ends(x0, x1)
  right = ("%s %s"):format(o.x, right)
  out[#out + 1] = (" "):rep(beside + 1) .. corner .. (o.letters and "-" or "─"):rep(width)
  out[#out + 1] = (" "):rep(beside + 2) .. left .. (" "):rep(width - #left - #right) .. right
  if o.y and o.y ~= "" then out[#out + 1] = "  y: " .. o.y end
  if #lines > 1 then table.move(legend(lines, o), 1, #lines, #out + 1, out) end
  return out
end

return terminal_chart
