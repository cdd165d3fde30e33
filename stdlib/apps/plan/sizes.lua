--- stdlib/apps/plan/sizes.lua: numbers of bytes as texts, and the other way round.
local sizes = {}

local UNITS <const> = { "", "k", "m", "g", "t" }

--- Bytes of "80GB" (powers of 1000), "512MiB" (of 1024) or "80G" (as GB); nil of anything else.
function sizes.bytes(text)
  local number, prefix, rest = tostring(text):lower():match "^%s*([%d.]+)%s*([kmgt]?)(i?b?)$"
  number = tonumber(number)
  if not number or number <= 0 then return nil end
  local base = rest:sub(1, 1) == "i" and 1024 or 1000
  for power, unit in ipairs(UNITS) do
    if unit == prefix then return math.floor(number * base ^ (power - 1)) end
  end
end

--- "1.53 GB": powers of 1000, three digits.
function sizes.text(bytes)
  local power = 1
  while bytes >= 999.5 and power < #UNITS do bytes, power = bytes / 1000, power + 1 end
  local digits = (power == 1 or bytes >= 99.95) and 0 or bytes >= 9.995 and 1 or 2
  return (("%%.%df %%sB"):format(digits)):format(bytes, UNITS[power]:upper())
end

return sizes
