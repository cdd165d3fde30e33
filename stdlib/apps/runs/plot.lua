--- stdlib/apps/runs/plot.lua: `ltrain plot RUN...`: metrics of runs as charts, in the terminal or
--- as an SVG.
local c = require "ltrain.c"
local chart_rows = require "ltrain.apps.views.chart_rows"
local chosen_runs = require "ltrain.apps.runs.selected_runs"
local errors = require "ltrain.core.errors"
local refuse = require "ltrain.cli.refuse"
local series = require "ltrain.apps.views.series"
local svg_chart = require "ltrain.apps.views.svg_chart"

local plot = {}

local ROWS <const> = 15 -- of a chart

-- The metrics to draw: those that are asked for, or all; nil and what is wrong.
local function names_of(list, asked)
  local known = chosen_runs.metrics(list)
  if #known == 0 then
    return nil, ("%s: has no metrics%s"):format(list[1].path,
      list[1].status == "running" and " yet" or "")
  end
  if not asked then return known end
  local names, is_known = {}, {}
  for _, name in ipairs(known) do is_known[name] = true end
  for name in asked:gmatch "[^,]+" do
    if not is_known[name] then
      return nil, ("no run has a metric %s%s; there is: %s"):format(errors.show(name),
        errors.did_you_mean(name, known), table.concat(known, ", "))
    end
    names[#names + 1] = name
  end
  return names
end

-- The chart of a metric: {lines =, title =, x =, log_y =, left_out =}.
local function chart_of(list, labels, name, o)
  local chart = { lines = {}, title = name, x = o.x, log_y = o.log_y, left_out = 0 }
  for i, run in ipairs(list) do
    local line = series.line(run, name, labels[i], o)
    if line then
      chart.lines[#chart.lines + 1] = line
      chart.left_out = chart.left_out + line.left_out
    end
  end
  if o.smooth > 0 then chart.title = ("%s (smoothed by %g)"):format(chart.title, o.smooth) end
  if chart.left_out > 0 then
    chart.title = ("%s (%d value%s left out: %s)"):format(chart.title, chart.left_out,
      chart.left_out == 1 and "" or "s", o.log_y and "not finite, or not above 0" or "not finite")
  end
  return chart
end

local function print_charts(host, charts)
  for i, chart in ipairs(charts) do
    host.paint((i > 1 and "\n" or "") .. table.concat(chart_rows(chart, ROWS), "\n") .. "\n")
  end
end

--- The word's main: returns the exit status.
function plot.main(word, parsed, host)
  local o = parsed.options
  local asked = { x = o.x or "step", smooth = o.smooth or 0, log_y = o.log_y or false }
  local function warn(text) host.complain(("ltrain: %s: warning: %s\n"):format(word.name, text)) end
  local list, message = chosen_runs.read({ parsed.script, table.unpack(parsed.args) }, warn)
  local names
  if list then names, message = names_of(list, o.metric) end
  if not names then return refuse(host, word, message) end
  local labels, charts = chosen_runs.labels(list), {}
  for i, name in ipairs(names) do charts[i] = chart_of(list, labels, name, asked) end
  if not o.svg then
    print_charts(host, charts)
    return 0
  end
  local ok
  ok, message = c.io.write_file(o.svg, svg_chart(charts))
  if not ok then return refuse(host, word, message) end
  host.write(("wrote %s: %d chart%s of %d run%s\n"):format(o.svg, #charts,
    #charts == 1 and "" or "s", #list, #list == 1 and "" or "s"))
  return 0
end

return plot
