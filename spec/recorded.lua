-- spec/recorded.lua: reads what other libraries computed, as spec/recorded.py writes it: a value a
-- line of JSON. Of the first line, which says by which script and of which library, nothing is
-- returned.
local lt = require "ltrain"

local SPECIAL <const> = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

-- Numbers that JSON has no form for are texts.
local function with_special(value)
  if type(value) == "string" then return SPECIAL[value] or value end
  if type(value) ~= "table" then return value end
  local all = {}
  for key, one in pairs(value) do all[key] = with_special(one) end
  return all
end

-- The list of a file's values.
return function(path)
  local list = {}
  for value in lt.json.lines(path) do
    if not value.written_by then list[#list + 1] = with_special(value) end
  end
  return list
end
