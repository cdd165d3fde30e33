-- stdlib/core/source_line.lua: the line of a script that an error names, with a caret.
--
-- Lua knows lines, not columns: the caret is below the operation, the option or the name that the
-- message speaks of, where the line has it, or else below the line's first word.
local console = require "ltrain.core.console"
local script_source = require "ltrain.core.script_source"

-- Where the word stands by itself in the line; nil for nowhere.
local function find_word(line, word)
  return line:find("%f[%w_]" .. word .. "%f[^%w_]")
end

-- What the message speaks of, the nearest to the fault first: names in quotes, then the operation.
local function column_of(line, message)
  local near = message:match "near '([^\n]*)'" -- of the parser
  local at, to = line:find(near or "\n", 1, true)
  if at and not line:find(near, to + 1, true) then return at end
  for quoted in message:gmatch "'([%a_][%w_]*)'" do
    at = find_word(line, quoted)
    if at then return at end
  end
  local operation = message:match "^([%w_.]+):"
  return operation and find_word(line, operation:match "[%w_]+$" or operation) or line:find "%S"
end

--- Two lines for a message "script.lua:3: matmul: ...": line 3 with its number, and a caret; nil
--- where there is nothing to show, or the line is longer than the terminal.
return function(message)
  local path, number, said = message:match "^([^\n]-):(%d+): ([^\n]*)"
  local line = path and script_source.line(script_source.named(path), tonumber(number))
  if not line or #line + #number + 3 > console.width() or line:find "[^\t%C]" then return nil end
  local at = column_of(line, said)
  if not at then return nil end
  local blank = line:sub(1, at - 1):gsub("[\x80-\xBF]", ""):gsub("[^\t]", " ")
  return ("%s | %s\n%s | %s^"):format(number, line, (" "):rep(#number), blank)
end
