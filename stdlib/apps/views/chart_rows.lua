--- stdlib/apps/views/chart_rows.lua: draws a chart as rows of text, in the letters and colours of
--- standard output.
local bar_rows = require "ltrain.apps.views.bar_rows"
local errors = require "ltrain.core.errors"
local heatmap_rows = require "ltrain.apps.views.heatmap_rows"
local terminal = require "ltrain.apps.views.terminal"
local terminal_chart = require "ltrain.apps.views.terminal_chart"

local NARROW <const>, WIDE <const> = 40, 100 -- columns

--- The rows of a chart as views/svg_chart.lua takes it; `height` of them between the axes.
return function(chart, height)
  local at = terminal.look()
  at.width = math.max(NARROW, math.min(at.width, WIDE))
  local title = errors.printable(chart.title)
  if chart.kind == "bar" then
    return bar_rows(chart.bars, { title = title, width = at.width, letters = not at.utf8 })
  elseif chart.kind == "heatmap" then
    return heatmap_rows(chart, at)
  end
  local letters = not at.utf8 or #chart.lines > (at.colours and terminal_chart.colours or 1)
  return terminal_chart.rows(chart.lines, { title = title, x = chart.x, y = chart.y,
    log_y = chart.log_y, width = at.width, height = height, is_scatter = chart.kind == "scatter",
    letters = letters, colours = at.colours and not letters })
end
