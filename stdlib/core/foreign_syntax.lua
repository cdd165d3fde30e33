-- stdlib/core/foreign_syntax.lua: what to write in Lua for a line that has the syntax of Python or
-- C.

-- What is on the line (a Lua pattern), what the parser stopped at (nil: anything), and what to do.
local ROWS <const> = {
  { "^%s*import%s+([%w_]+)", nil, 'write local %1 = require "%1"' },
  { "^%s*from%s+([%w_.]+)%s+import", nil, 'write local m = require "%1"' },
  { "^%s*def%s+([%w_]+)", nil, "write function %1(...) ... end" },
  { "^%s*class%s+([%w_]+)", nil, 'write local %1 = lt.Module:extend("%1")' },
  { "%f[%w_]elif%f[^%w_]", nil, "write elseif ... then" },
  { "%f[%w_]lambda%s+([%w_, ]*):", nil, "write function(%1) return ... end" },
  { "([%w_.]+)%s*([-+*/])=[^=]", nil, "there is no %2=: write %1 = %1 %2 ..." },
  { "([%w_.]+)%s*:=", nil, "write %1 = ..." },
  { "([%w_.]+)%+%+", "+", "write %1 = %1 + 1" },
  { "!=", "!", "write ~=" },
  { "!", "!", "write not" },
  { "&&", "&", "write and" },
  { "||", "|", "write or" },
  { "%*%*", "*", "a power is x ^ 2" },
  { "=%s*%[", "[", "a list is {1, 2}" },
  { "^%s*with%s", nil, "write local _ <close> = lt.no_grad()" },
  { "[(,]%s*([%a_][%w_]*)%s*=[^=]", "=", "arguments with names are a table: f(x, {%1 = value})" },
  { "[(,=]%s*%([^()]*,[^()]*%)", ",", "a list is {2, 3}" },
  { "%[[^%[%]{}]*:", ":", "a part of a tensor is x[{lt.all, 2}], x[{{1, 3}}]" },
  { "%w%[[^%[%]{}]*,", ",", "an element is x[{1, 2}]" },
  { "@", "@", "a product of matrices is x:matmul(y)" },
  { "%f[%w_]f(['\"])", nil, "write ('loss %g'):format(loss)" },
  { "%f[%w_]if%f[^%w_].*[^=~<>]=[^=]", "=", "equality is ==" },
  { "%f[%w_]while%f[^%w_].*[^=~<>]=[^=]", "=", "equality is ==" },
  { "^%s*#", "#", "a comment is -- text" },
  { ":%s*$", ":", "a block is if ... then ... end, for ... do ... end" },
}

-- What characters of word processors and web pages stand for.
local LOOKS_LIKE <const> = { [0x201C] = '"', [0x201D] = '"', [0x2018] = "'", [0x2019] = "'",
  [0xA0] = "a space", [0x2212] = "-", [0x2013] = "-", [0xD7] = "*", [0x2260] = "~=",
  [0x2264] = "<=", [0x2265] = ">=", [0x2026] = "..." }

-- Of a byte that begins nothing in Lua: the character that it is of.
local function of_byte(byte, line)
  if byte == 254 or byte == 255 then return "; the file is UTF-16: save it as UTF-8" end
  if line:find "[\0-\8\14-\31]" then
    return "; the file is not a text file: a Lua script is expected"
  end
  local char = byte > 127 and line:match("()" .. string.char(byte))
  char = char and line:match("^" .. utf8.charpattern, char)
  if not char or not utf8.len(char) then return "; the file is not valid UTF-8" end
  local code = utf8.codepoint(char)
  local same = LOOKS_LIKE[code]
  return ("; it is the character U+%04X (%s): %s"):format(code, char, same and "write " .. same
    or "names have the letters a to z, digits and _")
end

local PCALL <const> = "local ok, message = pcall(function() ... end)"
local BLOCKS <const> = { try = PCALL, except = PCALL, with = "local _ <close> = lt.no_grad()" }

-- Of the line before, where that is of Python: Lua reads on, as its statements need no end.
local function of_line_before(before)
  local word = (before or ""):gsub("%s*%-%-.*", ""):match "^%s*(%a+)[^'\"]*:%s*$"
  return BLOCKS[word] and "; the line before is Python: write " .. BLOCKS[word]
    or word and "; the line before ends with a colon: a block is if ... then ... end, "
    .. "for ... do ... end" or ""
end

--- "; write ..." for what the parser says ("syntax error near '+'") of a line; "" where nothing is
--- known. `before`: the line before it.
return function(said, line, before)
  local near = said:match "near '(.*)'$" or said:match "near (<eof>)$"
  if not near then return line:find "\0" and of_byte(0, line) or "" end
  local byte = near:match "^<\\(%d+)>$"
  if byte then return of_byte(tonumber(byte), line) end
  for _, row in ipairs(ROWS) do
    local first, second = line:match(row[1])
    if first and (row[2] == nil or near:sub(1, #row[2]) == row[2]) then
      return "; " .. row[3]:gsub("%%(%d)", { ["1"] = first, ["2"] = second })
    end
  end
  return of_line_before(before)
end
