--- stdlib/core/source_line.lua: the line of a script that an error names, with a caret.
--
-- Lua knows lines, not columns: the caret is below the operation, the option or the name that the
-- message speaks of, where the line has it, or else below the line's first word.
local source = require "ltrain.core.source"

local MOST <const> = 200 -- bytes of a line: longer ones are data

-- Where the word stands by itself in the line; nil for nowhere.
local function find_word(line, word)
  return line:find("%f[%w_]" .. word .. "%f[^%w_]")
end

-- What the message speaks of, the nearest to the fault first: names in quotes, then the operation.
local function column_of(line, message)
  for quoted in message:gmatch "'([%a_][%w_]*)'" do
    local at = find_word(line, quoted)
    if at then return at end
  end
  local operation = message:match "^([%w_.]+):"
  return operation and find_word(line, operation:match "[%w_]+$" or operation) or line:find "%S"
end

--- Two lines for a message "script.lua:3: matmul: ...": line 3 with its number, and a caret; nil
--- where there is nothing to show.
return function(message)
  local path, number, said = message:match "^([^\n]-):(%d+): ([^\n]*)"
  local line = path and source.line(source.named(path), tonumber(number))
  if not line or #line > MOST or line:find "%c" and line:find "[^\t%C]" then return nil end
  local at = column_of(line, said)
  if not at then return nil end
  local before = line:sub(1, at - 1)
  local blank = (utf8.len(before) and before:gsub(utf8.charpattern, function(char)
    return char == "\t" and "\t" or " "
  end) or before:gsub("[^\t]", " "))
  return ("%s | %s\n%s | %s^"):format(number, line, (" "):rep(#number), blank)
end
