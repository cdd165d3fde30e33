--- stdlib/runs/metrics_csv.lua: reads the rows of a metrics.csv, also while it is being written or
--- after its writer was killed: an incomplete last line is skipped.
local CSVLogger = require "ltrain.loggers.CSVLogger"
local c = require "ltrain.c"
local complete_lines = require "ltrain.core.complete_lines"

local FINITE <const> = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

-- The number of a field; nil of an empty one, and of what is none.
local function number(field)
  return FINITE[field] or tonumber(field)
end

local function add(series, name, step, epoch, value)
  local one = series[name]
  if not one then
    one = { steps = {}, epochs = {}, values = {} }
    series[name] = one
  end
  local n = #one.values + 1
  one.steps[n], one.epochs[n], one.values[n] = step, epoch, value
end

--- name -> {steps =, epochs =, values =}, lists of one length: a row counts for the metrics that it
--- has. Empty without a file; nil and a reason where it cannot be read.
return function(path)
  if not c.io.kind(path) then return {} end
  local text, message = c.io.read_file(path)
  if not text then return nil, message end
  local series, names = {}, nil
  for line in complete_lines(text) do
    if not names then
      names = CSVLogger.read_header(line)
      if names[1] ~= "epoch" or names[2] ~= "step" then
        return nil, ("%s: its columns must begin with epoch,step"):format(path)
      end
    else
      local k, epoch, step = 0, nil, nil
      for field in (line .. ","):gmatch "([^,]*)," do
        k = k + 1
        local value = number(field)
        if k == 1 then
          epoch = value
        elseif k == 2 then
          step = value
        elseif value and names[k] then
          add(series, names[k], step or 0, epoch or 0, value)
        end
      end
    end
  end
  return series
end
