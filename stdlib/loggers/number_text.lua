--- stdlib/loggers/number_text.lua: the shortest text that reads back as the same number.
local c = require "ltrain.c"

return function(value)
  if math.type(value) == "integer" then return tostring(value) end
  if value ~= value then return "nan" end
  if value == math.huge then return "inf" end
  if value == -math.huge then return "-inf" end
  local _ <close> = c.runtime.plain_locale()
  for digits = 15, 17 do
    local text = ("%%.%dg"):format(digits):format(value)
    if tonumber(text) == value then return text end
  end
end
