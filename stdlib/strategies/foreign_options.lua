--- stdlib/strategies/foreign_options.lua: options that other libraries' strategies have: those with
--- a meaning here have it, others are refused with a remedy, or accepted without effect and
--- reported.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local foreign_options = {}

--- A row that refuses every value.
function foreign_options.refused(why)
  return { check = function() return "is not an option here: " .. why end,
    doc = "not an option here: " .. why }
end

--- A row that is accepted and has no effect.
function foreign_options.unneeded(type, why)
  return { type = type, doc = "no effect: " .. why, why = why }
end

--- Returns the checked options without those that have no effect, and a list of notes to report.
function foreign_options.check(options, rows, where)
  local o, notes = config.check(options, rows, where), {}
  for name, row in next, rows do
    if row.why and o[name] ~= nil then
      notes[#notes + 1] = ("%s = %s has no effect: %s"):format(name, o[name], row.why)
      o[name] = nil
    end
  end
  table.sort(notes)
  return o, notes
end

--- Takes the option `other`, another name of the option `name`, in its place; `who`: the strategy,
--- in errors.
function foreign_options.merge(who, o, name, other)
  if o[other] == nil then return end
  if o[name] ~= nil then
    errors.blame("%s: %s and %s are one option: give one", who, other, name)
  end
  o[name], o[other] = o[other], nil
end

return foreign_options
