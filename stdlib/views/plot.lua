--- stdlib/views/plot.lua: draws lines of numbers, in the terminal or as an SVG.
local c = require "ltrain.c"
local chart_rows = require "ltrain.views.chart_rows"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local series = require "ltrain.runs.series"
local svg_chart = require "ltrain.runs.svg_chart"
local tree = require "ltrain.core.tree"

local OPTIONS <const> = {
  file = { type = "string", doc = "write an SVG with this name, print nothing" },
  height = { type = "integer", default = 15, min = 3, doc = "rows in the terminal" },
  log_y = { type = "boolean", default = false, doc = "a logarithmic y axis" },
  smooth = { type = "number", default = 0, min = 0, below = 1,
             doc = "weight of an exponential moving average" },
  title = { type = "string", default = "", doc = "what stands above" },
  x = { type = "table|tensor", doc = "where the values are; by default at 1, 2, ..." },
  x_label = { type = "string", default = "", doc = "the name of the x axis" },
}

-- The numbers of a list or a tensor [N]; `name` says whose.
local function numbers_of(value, name)
  if c.is_tensor(value) then
    if value.ndim ~= 1 then
      errors.blame("plot: %s must be a tensor [N]: got %s", name, errors.show(value))
    end
    return value:detach():cpu():tolist()
  end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("plot: %s must be a list of numbers or a tensor [N]: got %s", name,
      errors.show(value))
  end
  local list = {}
  for i, one in ipairs(value) do
    if c.is_tensor(one) and one:numel() == 1 then one = one:item() end
    if type(one) ~= "number" then
      errors.blame("plot: %s[%d] must be a number: got %s", name, i, errors.show(one))
    end
    list[i] = one
  end
  return list
end

-- Whether a table is one of series: by name, or a list of lists or tensors.
local function is_collection(values)
  if type(values) ~= "table" or getmetatable(values) ~= nil then return false end
  local first = values[1]
  if first == nil then return next(values) ~= nil end
  return type(first) == "table" or c.is_tensor(first) and first.ndim > 0
end

-- A list of { label, numbers }.
local function all_series(values)
  if not is_collection(values) then return { { "", numbers_of(values, "the series") } } end
  local list = {}
  for name, value in tree.pairs(values) do
    list[#list + 1] = { tostring(name), numbers_of(value, errors.show(name)) }
  end
  return list
end

-- The chart: {lines =, title =, x =, log_y =}.
local function chart_of(values, o)
  local chart = { lines = {}, title = o.title, x = o.x_label, log_y = o.log_y }
  local positions, left_out = o.x and numbers_of(o.x, "x"), 0
  for k, one in ipairs(all_series(values)) do
    local label, numbers = table.unpack(one)
    local xs = positions or {}
    if positions and #positions ~= #numbers then
      errors.blame("plot: x has %d values, %s %d", #positions,
        label == "" and "the series" or errors.show(label), #numbers)
    end
    for i = 1, positions and 0 or #numbers do xs[i] = i end
    chart.lines[k] = series.of(xs, numbers, label, o)
    left_out = left_out + chart.lines[k].left_out
  end
  if left_out > 0 then
    chart.title = ("%s%s(%d value%s left out: %s)"):format(o.title, o.title == "" and "" or " ",
      left_out, left_out == 1 and "" or "s", o.log_y and "not finite, or not above 0"
      or "not finite")
  end
  return chart
end

--- Draws a list of numbers or a tensor [N] as a line; tables of those, by name or in a list, as a
--- line each: `lt.plot({train = losses, val = val_losses}, {log_y = true})`. Prints it, or writes
--- an SVG with `file = "loss.svg"`. Options: `file`, `log_y`, `smooth` (a weight from 0 to below
--- 1), `title`, `x` (where the values are: a list or a tensor [N]), `x_label`, `height` (rows).
--- Values that are not finite are left out, and counted above the chart. With a file it returns
--- true; nil and the reason where that cannot be written.
---@param values table|Tensor
---@param options table
return function(values, options)
  local o = config.check(options, OPTIONS, "plot")
  local chart = chart_of(values, o)
  if o.file and not o.file:lower():find "%.svg$" then
    errors.blame("plot: file must end in .svg, which is what is written: got '%s'", o.file)
  end
  if o.file then return c.io.write_file(o.file, svg_chart { chart }) end
  console.past(print, table.concat(chart_rows(chart, o.height), "\n"))
end
