--- stdlib/apps/views/svg_chart.lua: charts as an SVG, one below the other, in the colours of the
--- viewer's light or dark scheme.
local c = require "ltrain.c"
local series = require "ltrain.apps.views.series"
local svg = require "ltrain.apps.views.svg"

local WIDTH <const>, HEIGHT <const> = 760, 340 -- of a chart
local LEFT <const>, TOP <const>, RIGHT <const>, BOTTOM <const> = 84, 34, 20, 44 -- margins
local ROW <const> = 18 -- of the legend, and of bars
local CELL <const>, FEW <const> = 44, 24 -- of a heat map: its side, and cells of a row with texts
local HOVERED <const> = 400 -- points of a line of which each has its values
local STYLE <const> = [[
<style>
  text { font: 12px sans-serif; fill: #222 } polyline { fill: none; stroke-width: 1.5 }
  .back { fill: white } .grid { stroke: #ddd } .minor { stroke: #999 } .hover { fill-opacity: 0 }
  .hover:hover { fill-opacity: 1 } .bright { fill: #222 } .deep { fill: white }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .back { fill: #16181c } .grid { stroke: #3a3d44 } .minor { stroke: #777 }
    .bright { fill: #222 } .deep { fill: white }
  }
</style>
]]

local function circle(out, line, point, radius, colour, class, log_y)
  svg.element(out, '<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"%s>%s</circle>', point.x, point.y,
    radius, colour, class and (' class="%s"'):format(class) or "",
    svg.hover(line.label, point[1], log_y and 10.0 ^ point[2] or point[2]))
end

local function draw_line(out, line, k, at, o)
  local colour = svg.colour(k)
  local parts, is_line = {}, o.kind ~= "scatter" and #line.points > 1
  for i, point in ipairs(line.points) do
    local place = { x = at.x(point[1]), y = at.y(point[2]), point[1], point[2] }
    parts[i] = ("%.1f,%.1f"):format(place.x, place.y)
    if not is_line then circle(out, line, place, 3, colour, nil, o.log_y) end
  end
  if not is_line then return end
  svg.element(out, '<polyline points="%s" %s/>', table.concat(parts, " "), svg.stroke(k))
  for _, point in ipairs(#parts <= HOVERED and line.points or {}) do
    circle(out, line, { x = at.x(point[1]), y = at.y(point[2]), point[1], point[2] }, 4, colour,
      "hover", o.log_y)
  end
end

local function legend(out, lines, top)
  for k, line in ipairs(lines) do
    local y = top + (k - 1) * ROW + 8
    svg.element(out, '<line x1="%d" y1="%d" x2="%d" y2="%d" stroke-width="3" %s/>', LEFT, y - 4,
      LEFT + 18, y - 4, svg.stroke(k))
    svg.text(out, LEFT + 26, y, "start", line.label)
  end
  return #lines * ROW + 8
end

-- Lines, or the points of a scatter plot, from `top` on; returns the height.
local function lines_chart(out, o, top)
  local x0, x1, y0, y1 = series.span(o.lines)
  if not x0 then return 40 end
  local box = { left = LEFT, right = WIDTH - RIGHT, top = top + TOP,
    bottom = top + HEIGHT - BOTTOM }
  local at = {
    x = function(x) return box.left + (x - x0) / (x1 - x0) * (box.right - box.left) end,
    y = function(y) return box.bottom - (y - y0) / (y1 - y0) * (box.bottom - box.top) end,
  }
  svg.y_axis(out, box, y0, y1, at.y, o.log_y)
  svg.x_axis(out, box, x0, x1, at.x)
  svg.names(out, box, o.x, o.y)
  for k, line in ipairs(o.lines) do draw_line(out, line, k, at, o) end
  return HEIGHT + (#o.lines > 1 and legend(out, o.lines, top + HEIGHT) or 0)
end

-- Bars that lie, with their names on the left.
local function bars_chart(out, o, top)
  local low, high, left = 0, 0, LEFT
  for _, bar in ipairs(o.bars) do
    low, high = math.min(low, bar.value), math.max(high, bar.value)
    left = math.max(left, math.min(240, 16 + 7 * (utf8.len(bar.label) or #bar.label)))
  end
  if low == high then high = 1 end
  local box = { left = left, right = WIDTH - RIGHT - 40, top = top + TOP,
    bottom = top + TOP + #o.bars * ROW + 8 }
  local function to_x(x) return box.left + (x - low) / (high - low) * (box.right - box.left) end
  svg.x_axis(out, box, low, high, to_x)
  svg.names(out, box, o.x, o.y)
  for k, bar in ipairs(o.bars) do
    local y, from, to = box.top + (k - 1) * ROW + 6, to_x(math.min(bar.value, 0)),
      to_x(math.max(bar.value, 0))
    svg.text(out, box.left - 8, y + 10, "end", bar.label)
    svg.element(out, '<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s">%s</rect>', from,
      y, to - from, ROW - 5, svg.colour(1), svg.hover(bar.label, bar.value))
    svg.text(out, to + 4, y + 10, "start", bar.text)
  end
  return box.bottom - top + BOTTOM
end

-- From white to blue; a share of 0 to 1.
local function shade(share)
  local function mix(a, b) return math.floor(a + (b - a) * share + 0.5) end
  return ("#%02x%02x%02x"):format(mix(247, 8), mix(251, 48), mix(255, 107))
end

local function heatmap_cell(out, o, row, column, x, y, size)
  local value = o.cells[row][column]
  local share = value == value and math.abs(value) < math.huge
    and (value - o.low) / (o.high > o.low and o.high - o.low or 1)
  svg.element(out, '<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s">%s</rect>', x, y,
    size, size, share and shade(share) or "#d55e00",
    svg.hover(("%s, %s"):format(o.rows[row], o.columns[column]), value))
  if size < CELL then return end
  svg.text(out, x + size / 2, y + size / 2 + 4, "middle", o.texts[row][column],
    ('class="%s" pointer-events="none"'):format(share and share > 0.5 and "deep" or "bright"))
end

local function heatmap(out, o, top)
  local left = LEFT
  for _, label in ipairs(o.rows) do
    left = math.max(left, math.min(200, 36 + 7 * (utf8.len(label) or #label)))
  end
  local n, m = #o.cells, #o.columns
  local size = m <= (WIDTH - left) // CELL and n <= FEW and CELL
    or math.min((WIDTH - left - RIGHT) / m, 24)
  local every = math.max(1, math.ceil(14 / size))
  for row = 1, n do
    local y = top + TOP + (row - 1) * size
    if (row - 1) % every == 0 then
      svg.text(out, left - 8, y + size / 2 + 4, "end", o.rows[row])
    end
    for column = 1, m do heatmap_cell(out, o, row, column, left + (column - 1) * size, y, size) end
  end
  local bottom, slanted = top + TOP + n * size, 0
  for column = 1, m, every do
    local x, label = left + (column - 0.5) * size, o.columns[column]
    local length = 7 * (utf8.len(label) or #label)
    local leans = length > size * every
    if leans then slanted = math.max(slanted, length * 0.7) end
    svg.text(out, x, bottom + 16, leans and "end" or "middle", label,
      leans and ('transform="rotate(-45 %.1f %.1f)"'):format(x, bottom + 12) or nil)
  end
  svg.names(out, { left = left, right = left + m * size, top = top + TOP,
    bottom = bottom + slanted }, o.x, o.y)
  return bottom + slanted - top + BOTTOM
end

local KINDS <const> = { bar = bars_chart, heatmap = heatmap }

--- The text of an SVG of charts: a list of {lines =, title =, x =, y =, log_y =, kind =}, bars and
--- heat maps as views/plot.lua makes them.
return function(charts)
  local _ <close> = c.runtime.plain_locale()
  local out, top = {}, 0
  for _, one in ipairs(charts) do
    svg.text(out, LEFT, top + 20, "start", one.title)
    top = top + (KINDS[one.kind] or lines_chart)(out, one, top)
  end
  top = top // 1 | 0
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">\n')
    :format(WIDTH, top + 10, WIDTH, top + 10) .. STYLE
    .. ('<rect width="%d" height="%d" class="back"/>\n'):format(WIDTH, top + 10)
    .. table.concat(out, "\n") .. "\n</svg>\n"
end
