--- stdlib/check/syntax.lua: what to do about a syntax error that Lua reports.

local source = require "ltrain.core.source"

-- Signs of other languages: what Lua says it is near, what the line has, and what Lua writes.
local HABITS <const> = {
  { "!=", "not equal is written ~=" },
  { "+=", "write x = x + y: Lua has no +=" }, { "-=", "write x = x - y: Lua has no -=" },
  { "*=", "write x = x * y: Lua has no *=" }, { "/=", "write x = x / y: Lua has no /=" },
  { "++", "write x = x + 1: Lua has no ++" }, { "&&", "write and" }, { "||", "write or" },
  { "elif", "write elseif" }, { "else if", "write elseif, or end both if" },
  { "def ", "a function begins with `function name(...)` and ends with `end`" },
  { "import ", "write local lt = require \"ltrain\"" },
}

local function remedy_of(message, line)
  for _, row in ipairs(HABITS) do
    if line:find(row[1], 1, true) then return row[2] end
  end
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
  report:raised("syntax", message, remedy_of(message, source.lines(text)[number] or ""))
end
