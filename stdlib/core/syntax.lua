-- stdlib/core/syntax.lua: what to write where a line is of another language: Python or C.

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
  { "%f[%w_]if%f[^%w_].*[^=~<>]=[^=]", "=", "equality is ==" },
  { "%f[%w_]while%f[^%w_].*[^=~<>]=[^=]", "=", "equality is ==" },
  { "^%s*#", "#", "a comment is -- text" },
  { ":%s*$", ":", "a block is if ... then ... end, for ... do ... end" },
}

--- "; write ..." for what the parser says ("syntax error near '+'") of a line; "" where nothing is
--- known.
return function(said, line)
  local near = said:match "near '(.*)'$"
  if not near then return "" end
  for _, row in ipairs(ROWS) do
    local first, second = line:match(row[1])
    if first and (row[2] == nil or near:sub(1, #row[2]) == row[2]) then
      return "; " .. row[3]:gsub("%%(%d)", { ["1"] = first, ["2"] = second })
    end
  end
  return ""
end
