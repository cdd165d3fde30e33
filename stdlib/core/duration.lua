-- stdlib/core/duration.lua: converts durations as options take them ('DD:HH:MM:SS', {hours =}) to
-- seconds.
--
-- A number of seconds, "10 s" (min, h, d), "DD:HH:MM:SS", or a table of units: { hours = 1,
-- minutes = 30 }.

local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local duration = {}

local SECONDS <const> = { weeks = 604800, days = 86400, hours = 3600, minutes = 60, seconds = 1 }
local UNITS <const> = { s = 1, min = 60, h = 3600, d = 86400 }
local FORMS <const> = "'DD:HH:MM:SS', seconds, '10 s' (min, h, d), or a table of weeks, days, "
  .. "hours, minutes, seconds"

local function of_text(text)
  local count, unit = text:match "^%s*(%d+%.?%d*)%s*(%l+)%s*$"
  if UNITS[unit] then return tonumber(count) * UNITS[unit] end
  local days, hours, minutes, seconds = text:match("^%s*(%d+):(%d%d):(%d%d):(%d%d)%s*$")
  if not days then return nil, ("must be %s: got %s"):format(FORMS, errors.show(text)) end
  return days * 86400 + hours * 3600 + minutes * 60 + seconds
end

local function of_table(units)
  local total, names = nil, tree.keys(SECONDS)
  for name, count in tree.pairs(units) do
    if not SECONDS[name] then
      return nil, ("has no unit %s%s"):format(errors.show(name), errors.did_you_mean(name, names))
    elseif type(count) ~= "number" then
      return nil, ("needs a number of %s: got %s"):format(name, errors.show(count))
    end
    total = (total or 0) + count * SECONDS[name]
  end
  if not total then return nil, ("must be %s: got an empty table"):format(FORMS) end
  return total
end

--- Seconds; nil and what is wrong.
function duration.seconds(value)
  local seconds, wrong = value, nil
  if type(value) == "string" then
    seconds, wrong = of_text(value)
  elseif type(value) == "table" then
    seconds, wrong = of_table(value)
  end
  if seconds and (seconds < 0 or seconds ~= seconds) then
    return nil, ("must be at least 0 seconds: got %s"):format(errors.show(seconds))
  end
  return seconds, wrong
end

--- Whether a value is a table of units, and of nothing else.
function duration.is_table(value)
  return type(value) == "table" and next(value) ~= nil and of_table(value) ~= nil
end

--- A row of config.check for an option that takes one.
function duration.option(doc)
  return { type = "number|string|table", doc = doc,
    check = function(value) return select(2, duration.seconds(value)) end }
end

--- A row of an option that is used in seconds, whatever it is given as; `row`: default and bounds.
function duration.in_seconds(doc, row)
  row.type, row.convert = "number|string|table", duration.seconds
  row.doc = doc .. ": seconds, 'DD:HH:MM:SS' or {hours =, minutes =, seconds =}"
  return row
end

return duration
