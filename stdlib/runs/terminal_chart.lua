--- stdlib/runs/terminal_chart.lua: lines in a terminal, of 2 x 4 dots a letter (braille), or of
--- letters where lines could not be told apart or the terminal has no such letters.
local series = require "ltrain.runs.series"

-- Which bit of a braille letter a dot is, by row and column.
local DOTS <const> = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } }
local COLOURS <const> = { 36, 33, 35, 32, 34, 31 } -- of escape codes
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

local function draw(canvas, line, k, x0, x1, y0, y1)
  local columns, rows = canvas.width * canvas.wide - 1, canvas.height * canvas.high - 1
  local before
  for _, point in ipairs(line.points) do
    local x = ((point[1] - x0) / (x1 - x0) * columns + 0.5) // 1 | 0
    local y = ((point[2] - y0) / (y1 - y0) * rows + 0.5) // 1 | 0
    if before then connect(canvas, before[1], before[2], x, y, k) else set(canvas, x, y, k) end
    before = { x, y }
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

-- The numbers beside the rows, all of one width.
local function labels_of(height, y0, y1, log_y)
  local labels, width = {}, 0
  for row = 1, height do
    local shown = row == 1 or row == height or row == (height + 1) // 2
    local value = y1 - (row - 1) / (height - 1) * (y1 - y0)
    if math.abs(value) < 1e-9 * (y1 - y0) then value = 0 end -- a sum's rounding
    labels[row] = shown and series.text(value, log_y) or ""
    width = math.max(width, #labels[row])
  end
  return labels, width
end

local function legend(lines, o)
  local parts = {}
  for k, line in ipairs(lines) do
    local mark = o.letters and letter_of(k) or o.colours and paint("━━", k) or "━━"
    parts[k] = ("  %s %s"):format(mark, line.label)
  end
  return parts
end

--- The rows of a chart, a list of texts. `lines` as series.line gives them. o: width and height in
--- letters, title (without one no row is for it), x (its name), log_y, letters, colours.
return function(lines, o)
  local x0, x1, y0, y1 = series.span(lines)
  local out = { o.title ~= "" and o.title or nil }
  if not x0 then
    out[#out + 1] = "  (nothing to draw)"
    return out
  end
  local labels, beside = labels_of(o.height, y0, y1, o.log_y)
  local width = math.max(o.width - beside - 2, 10)
  local canvas = new_canvas(width, o.height, o.letters and 1 or 2, o.letters and 1 or 4)
  for k, line in ipairs(lines) do draw(canvas, line, k, x0, x1, y0, y1) end
  local bar, corner = o.letters and "|" or "│", o.letters and "+" or "└"
  for row = 1, o.height do
    out[#out + 1] = ("%" .. beside .. "s %s%s"):format(labels[row], bar, row_text(canvas, row, o))
  end
  local left, right = series.text(x0), ("%s %s"):format(o.x, series.text(x1))
  out[#out + 1] = (" "):rep(beside + 1) .. corner .. (o.letters and "-" or "─"):rep(width)
  out[#out + 1] = (" "):rep(beside + 2) .. left .. (" "):rep(width - #left - #right) .. right
  if #lines > 1 then table.move(legend(lines, o), 1, #lines, #out + 1, out) end
  return out
end
