--- stdlib/runs/svg_chart.lua: charts as an SVG, one below the other.
local c = require "ltrain.c"
local series = require "ltrain.runs.series"

local WIDTH <const>, HEIGHT <const> = 760, 340 -- of a chart
local LEFT <const>, TOP <const>, RIGHT <const>, BOTTOM <const> = 70, 34, 20, 44 -- margins
local ROW <const> = 18 -- of the legend
-- Colours that differ for the colour-blind (Okabe and Ito).
local COLOURS <const> = { "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
  "#000000" }

local ESCAPES <const> = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

local function escape(text) return (text:gsub('[&<>"]', ESCAPES):gsub("%c", " ")) end

local function element(out, format, ...) out[#out + 1] = format:format(...) end

local function text(out, x, y, anchor, said)
  element(out, '<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>', x, y, anchor, escape(said))
end

-- The axes, with lines at round numbers.
local function axes(out, to_x, to_y, span, o)
  local x0, x1, y0, y1 = table.unpack(span)
  for _, y in ipairs(series.ticks(y0, y1, 5)) do
    element(out, '<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" class="grid"/>', LEFT, to_y(y),
      WIDTH - RIGHT, to_y(y))
    text(out, LEFT - 8, to_y(y) + 4, "end", series.text(y, o.log_y))
  end
  for _, x in ipairs(series.ticks(x0, x1, 8)) do
    element(out, '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid"/>', to_x(x), to_y(y0),
      to_x(x), to_y(y1))
    text(out, to_x(x), to_y(y0) + 18, "middle", series.text(x))
  end
  text(out, (LEFT + WIDTH - RIGHT) / 2, to_y(y0) + 36, "middle", o.x)
end

local function draw_line(out, line, colour, to_x, to_y)
  local parts = {}
  for i, point in ipairs(line.points) do
    parts[i] = ("%.1f,%.1f"):format(to_x(point[1]), to_y(point[2]))
  end
  if #parts == 1 then
    element(out, '<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>', to_x(line.points[1][1]),
      to_y(line.points[1][2]), colour)
  elseif #parts > 1 then
    element(out, '<polyline points="%s" stroke="%s"/>', table.concat(parts, " "), colour)
  end
end

-- One chart from `top` on; returns its height.
local function chart(out, lines, top, o)
  local x0, x1, y0, y1 = series.span(lines)
  text(out, LEFT, top + 20, "start", o.title)
  if not x0 then return 40 end
  local bottom = top + HEIGHT - BOTTOM
  local function to_x(x) return LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT) end
  local function to_y(y) return bottom - (y - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM) end
  axes(out, to_x, to_y, { x0, x1, y0, y1 }, o)
  for k, line in ipairs(lines) do
    draw_line(out, line, COLOURS[(k - 1) % #COLOURS + 1], to_x, to_y)
  end
  if #lines == 1 then return HEIGHT end
  for k, line in ipairs(lines) do
    local y = top + HEIGHT + (k - 1) * ROW + 8
    element(out, '<rect x="%d" y="%d" width="14" height="4" fill="%s"/>', LEFT, y - 5,
      COLOURS[(k - 1) % #COLOURS + 1])
    text(out, LEFT + 22, y, "start", line.label)
  end
  return HEIGHT + #lines * ROW + 8
end

--- The text of an SVG of charts: a list of {lines =, title =, x =, log_y =}.
return function(charts)
  local _ <close> = c.runtime.plain_locale()
  local out, top = {}, 0
  for _, one in ipairs(charts) do top = top + chart(out, one.lines, top, one) end
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">\n')
    :format(WIDTH, top + 10, WIDTH, top + 10)
    .. "<style>text { font: 12px sans-serif } polyline { fill: none; stroke-width: 1.5 } "
    .. ".grid { stroke: #ddd }</style>\n"
    .. ('<rect width="%d" height="%d" fill="white"/>\n'):format(WIDTH, top + 10)
    .. table.concat(out, "\n") .. "\n</svg>\n"
end
