--- stdlib/metrics/metric_plot.lua: Metric:plot: draws the value of a metric with lt.plot.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local load_export = require "ltrain.core.load_export"
local tree = require "ltrain.core.tree"

local function name_of(metric) return getmetatable(metric).__name end

-- Adds the numbers of a value to a table by name: a number, a tensor [C], a table of those.
local function flatten(value, name, into)
  if type(value) == "number" then
    into[name] = value
  elseif c.is_tensor(value) and value:numel() == 1 then
    into[name] = value:item()
  elseif c.is_tensor(value) and value.ndim == 1 then
    for i = 1, value.shape[1] do into[("%s %d"):format(name, i - 1)] = value[i]:item() end
  elseif type(value) == "table" then
    for key, field in tree.pairs(value) do
      flatten(field, type(key) == "string" and key or ("%s %s"):format(name, key), into)
    end
  end
  return into
end

-- Line charts of the values of several calls.
local function history(values, name)
  local lines = {}
  for i, value in ipairs(values) do
    for key, number in tree.pairs(flatten(value, name, {})) do
      lines[key] = lines[key] or {}
      if #lines[key] ~= i - 1 then
        errors.blame("plot: values[%d] has '%s', and those before have not", i, key)
      end
      lines[key][i] = number
    end
  end
  return lines, { x_label = "call" }
end

local function chart_of(metric, values)
  local name = name_of(metric)
  if values ~= nil then
    if type(values) ~= "table" or getmetatable(values) or #values == 0 then
      errors.blame("plot: values must be a list of what metric(...) or compute returned: got %s",
        errors.show(values))
    end
    return history(values, name)
  end
  local results = table.pack(metric:compute())
  if metric._chart then return metric:_chart(table.unpack(results, 1, results.n)) end
  local value = results[1]
  if c.is_tensor(value) and value.ndim == 1 and value:numel() > 1 then
    local labels = {}
    for i = 1, value.shape[1] do labels[i] = tostring(i - 1) end
    return value, { kind = "bar", labels = labels }
  end
  local bars = flatten(value, name, {})
  if next(bars) == nil then
    errors.blame("plot: what %s computes has no chart: got %s", name, errors.show(value))
  end
  return bars, { kind = "bar" }
end

--- Draws what metric:compute() returns, or options.values; other options are those of lt.plot.
return function(metric, options)
  if options ~= nil and (type(options) ~= "table" or getmetatable(options)) then
    errors.blame("plot: options must be a table: got %s", errors.show(options))
  end
  local given = {}
  for key, value in next, options or {} do given[key] = value end
  local values = given.values
  given.values = nil
  local data, defaults = chart_of(metric, values)
  defaults.title = name_of(metric)
  for key, value in next, defaults do
    if given[key] == nil then given[key] = value end
  end
  return load_export "plot"(data, given)
end
