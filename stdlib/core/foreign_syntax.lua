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
  { "^%s*#", "#", "a comment is -- text" },
  { ":%s*$", ":", "a block is if ... then ... end, for ... do ... end" },
}

-- Of a byte that begins nothing in Lua, as those of letters beyond ASCII and of typographic quotes.
local BYTE <const> = "; outside of strings and comments a Lua script is plain ASCII text: letters "
  .. "a to z, digits, _, and \" or ' around strings"

--- "; write ..." for what the parser says ("syntax error near '+'") of a line; "" where nothing is
--- known. `before`: the line before it.
return function(said, line, before)
  local near = said:match "near '(.*)'$" or said:match "near (<eof>)$" or ""
  if near:find "^<\\%d+>$" then return BYTE end
  for _, row in ipairs(ROWS) do
    local first, second = line:match(row[1])
    if first and (row[2] == nil or near:sub(1, #row[2]) == row[2]) then
      return "; " .. row[3]:gsub("%%(%d)", { ["1"] = first, ["2"] = second })
    end
  end
  -- Lua reads on behind `while x:`, as its statements need no end.
  local is_python <const> = (before or ""):gsub("%s*%-%-.*", ""):find "^%s*%a+[^'\"]*:%s*$"
  return is_python and "; the line before ends with a colon: a block is if ... then ... end, "
    .. "for ... do ... end" or ""
end
