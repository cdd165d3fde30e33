--- stdlib/apps/check/syntax.lua: hints for the syntax errors that Lua reports.
local habit = require "ltrain.core.foreign_syntax"
local script_source = require "ltrain.core.script_source"

local function remedy_of(message, line)
  local meant = habit(message, line)
  if meant ~= "" then return meant:sub(3) end
  if line:find("else if", 1, true) then return "write elseif, or end both if" end
  local opened = message:match "%(to close '([^']+)' at line %d+%)"
  if opened then return ("close the '%s' of that line"):format(opened) end
  if message:find "'end' expected near <eof>" then return "a function, if, for or do has no end" end
  if message:find "unfinished string" then return "close the string on its line" end
  if message:find "'=' expected near" or message:find "unexpected symbol" then
    return "a statement is an assignment or a call"
  end
  return "see the lines above it: the error is there or before it"
end

--- Adds the finding of a message that `load` gave for the text.
return function(report, message, text)
  local number = math.tointeger(tonumber(message:match ":(%d+): ")) or 0
  report:raised("syntax", message, remedy_of(message, script_source.lines(text)[number] or ""))
end
