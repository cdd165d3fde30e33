--- stdlib/apps/views/plot.lua: draws lines, points, bars and heat maps, in the terminal or as an
--- SVG.
local axis = require "ltrain.apps.views.axis"
local c = require "ltrain.c"
local chart_rows = require "ltrain.apps.views.chart_rows"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local series = require "ltrain.apps.views.series"
local svg_chart = require "ltrain.apps.views.svg_chart"
local values_of = require "ltrain.apps.views.plot_values"

local OPTIONS <const> = {
  file = { type = "string", doc = "write an SVG with this name, print nothing" },
  height = { type = "integer", default = 15, min = 3, doc = "rows in the terminal" },
  kind = { type = "string", default = "line", choices = { "line", "scatter", "bar", "heatmap" },
           doc = "what is drawn" },
  labels = { type = "table", doc = "names of bars, or of the columns of a heat map" },
  log_y = { type = "boolean", default = false, doc = "a logarithmic y axis" },
  row_labels = { type = "table",
                 doc = "names of the rows of a heat map; of a square one by default `labels`" },
  smooth = { type = "number", default = 0, min = 0, below = 1,
             doc = "weight of an exponential moving average" },
  title = { type = "string", default = "", doc = "what stands above" },
  x = { type = "table|tensor",
        doc = "where the values are, or a table of that by series; by default at 1, 2, ..." },
  x_label = { type = "string", default = "", doc = "the name of the x axis" },
  y_label = { type = "string", default = "", doc = "the name of the y axis" },
}

local function with_left_out(title, count, o)
  if count == 0 then return title end
  return ("%s%s(%d value%s left out: %s)"):format(title, title == "" and "" or " ", count,
    count == 1 and "" or "s", o.log_y and "not finite, or not above 0" or "not finite")
end

local function is_finite(value) return value == value and math.abs(value) < math.huge end

local function lines_of(values, o)
  local lines, left_out = {}, 0
  for k, one in ipairs(values_of.series(values, o)) do
    local label, numbers, places = table.unpack(one)
    lines[k] = series.of(places, numbers, label, o)
    left_out = left_out + lines[k].left_out
  end
  return { lines = lines, log_y = o.log_y, title = with_left_out(o.title, left_out, o) }
end

local function bars_of(values, o)
  local bars, left_out = {}, 0
  for _, bar in ipairs(values_of.bars(values, o.labels)) do
    if is_finite(bar.value) then
      bar.text = axis.text(bar.value)
      bars[#bars + 1] = bar
    else
      left_out = left_out + 1
    end
  end
  return { bars = bars, title = with_left_out(o.title, left_out, o) }
end

local function heatmap_of(values, o)
  local chart = values_of.matrix(values, o)
  chart.title, chart.texts, chart.low, chart.high = o.title, {}, math.huge, -math.huge
  for i, row in ipairs(chart.cells) do
    chart.texts[i] = {}
    for k, value in ipairs(row) do
      local is_count = math.type(value) == "integer" and math.abs(value) < 1e6
      chart.texts[i][k] = is_count and tostring(value) or ("%.3g"):format(value)
      if is_finite(value) then
        chart.low, chart.high = math.min(chart.low, value), math.max(chart.high, value)
      end
    end
  end
  return chart
end

local CHARTS <const> = { line = lines_of, scatter = lines_of, bar = bars_of, heatmap = heatmap_of }
-- Options that only some kinds have.
local ONLY <const> = {
  log_y = { line = true, scatter = true }, smooth = { line = true },
  x = { line = true, scatter = true }, labels = { bar = true, heatmap = true },
  row_labels = { heatmap = true },
}

local function check_kind(o, options)
  for name, kinds in next, ONLY do
    if options and options[name] ~= nil and not kinds[o.kind] then
      errors.blame("plot: %s has no meaning with kind = '%s'", name, o.kind)
    end
  end
end

--- Draws a list of numbers or a tensor [N] as a line; tables of those, by name or in a list, as a
--- line each: `lt.plot({train = losses, val = val_losses}, {log_y = true})`. Other kinds:
--- "scatter", points without lines, also of tensors [N, 2]; "bar", a list or a tensor [N] of
--- numbers with `labels`, or numbers by name; "heatmap", a matrix [R, C] with its values. Prints
--- it, or writes an SVG with `file = "loss.svg"`, which shows whole values on hover.
--- Options: `kind`, `file`, `labels`, `row_labels`, `log_y`, `smooth` (a weight from 0 to below 1),
--- `title`, `x` (where the values are: a list or a tensor [N]), `x_label`, `y_label`, `height`
--- (rows). Values that are not finite are left out, and counted above the chart. With a file it
--- returns true; nil and the reason where that cannot be written.
---@param values table|Tensor
---@param options table
return function(values, options)
  local o = config.check(options, OPTIONS, "plot")
  check_kind(o, options)
  local _ <close> = c.runtime.plain_locale()
  local chart = CHARTS[o.kind](values, o)
  chart.kind, chart.x, chart.y = o.kind, o.x_label, o.y_label
  if o.file and not o.file:lower():find "%.svg$" then
    errors.blame("plot: file must end in .svg, which is what is written: got '%s'", o.file)
  end
  if o.file then return c.io.write_file(o.file, svg_chart { chart }) end
  console.past(print, table.concat(chart_rows(chart, o.height), "\n"))
end
