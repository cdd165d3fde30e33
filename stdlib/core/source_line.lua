--- stdlib/core/source_line.lua: the line of a script that an error names, with a caret.
--
-- Lua knows lines, not columns: the caret is below the operation, the option or the name that the
-- message speaks of, where the line has it, or else below the line's first word.
local console = require "ltrain.core.console"
local script_source = require "ltrain.core.script_source"

local CUT <const> = "..."
local MOST <const> = 10000 -- bytes of a line: longer ones are data

-- First and last of characters that take no column of a terminal, or two, and blanks as wide.
local WIDTHS <const> = { { 0x300, 0x36F, "" }, { 0x200B, 0x200F, "" }, { 0xFE00, 0xFE0F, "" },
  { 0x1100, 0x115F, "  " }, { 0x2E80, 0xA4CF, "  " }, { 0xAC00, 0xD7A3, "  " },
  { 0xF900, 0xFAFF, "  " }, { 0xFE30, 0xFE6F, "  " }, { 0xFF00, 0xFF60, "  " },
  { 0xFFE0, 0xFFE6, "  " }, { 0x1F300, 0x1FAFF, "  " }, { 0x20000, 0x3FFFD, "  " } }

local function blank_of(char)
  local code = utf8.codepoint(char)
  for _, range in ipairs(WIDTHS) do
    if code >= range[1] and code <= range[2] then return range[3] end
  end
  return char == "\t" and char or " "
end

-- Where the word stands by itself in the line; nil for nowhere.
local function find_word(line, word)
  return line:find("%f[%w_]" .. word .. "%f[^%w_]")
end

-- What the message speaks of, the nearest to the fault first: names in quotes, then the operation.
local function column_of(line, message)
  local near = message:match "near '([^\n]*)'" -- of the parser
  if near then
    near = near:gsub("^<\\(%d+)>$", function(byte) return string.char(byte) end)
    local at, to = line:find(near, 1, true)
    return at and not line:find(near, to + 1, true) and at or line:find "%S"
  end
  for quoted in message:gmatch "'([%a_][%w_]*)'" do
    local at = find_word(line, quoted)
    if at then return at end
  end
  local operation = message:match "^([%w_.]+):"
  return operation and find_word(line, operation:match "[%w_]+$" or operation) or line:find "%S"
end

-- The part of a long line that fits into a terminal, and where its byte `at` is in that.
local function part_of(line, at, columns)
  if #line <= columns then return line, at end
  local from, to = 1, #line
  if at > columns // 2 then from = at - columns // 2 end
  while from < at and line:find("^[\x80-\xBF]", from) do from = from + 1 end
  if to - from >= columns then to = from + columns - 1 end
  while to < #line and line:find("^[\x80-\xBF]", to + 1) do to = to + 1 end
  local first = from > 1 and CUT or ""
  return first .. line:sub(from, to) .. (to < #line and CUT or ""), at - from + 1 + #first
end

--- Two lines for a message "script.lua:3: matmul: ...": line 3 with its number, and a caret; nil
--- where there is nothing to show. Of a line that is longer than the terminal a part is shown.
return function(message)
  local path, number, said = message:match "^([^\n]-):(%d+): ([^\n]*)"
  local line = path and script_source.line(script_source.named(path), tonumber(number))
  if not line or #line > MOST or line:find "%c" and line:find "[^\t%C]" then return nil end
  local at = column_of(line, said)
  if not at then return nil end
  line, at = part_of(line, at, math.max(console.width() - #number - 3 - 2 * #CUT, 20))
  local before = line:sub(1, at - 1)
  local blank = utf8.len(before) and before:gsub(utf8.charpattern, blank_of)
    or before:gsub("[^\t]", " ")
  return ("%s | %s\n%s | %s^"):format(number, line, (" "):rep(#number), blank)
end
