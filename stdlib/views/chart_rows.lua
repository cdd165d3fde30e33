--- stdlib/views/chart_rows.lua: a chart as rows of text for standard output as it is.
local errors = require "ltrain.core.errors"
local terminal = require "ltrain.views.terminal"
local terminal_chart = require "ltrain.runs.terminal_chart"

local NARROW <const>, WIDE <const> = 40, 100 -- columns

--- The rows of {lines =, title =, x =, log_y =}, `height` of them between the axes.
return function(chart, height)
  local at = terminal.look()
  local letters = not at.utf8 or #chart.lines > 1 and not at.colours
  return terminal_chart(chart.lines, { title = errors.printable(chart.title), x = chart.x,
    log_y = chart.log_y, width = math.max(NARROW, math.min(at.width, WIDE)), height = height,
    letters = letters, colours = at.colours and not letters })
end
