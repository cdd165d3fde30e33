--- stdlib/apps/plan/sizes.lua: bytes, rates and seconds as texts, and the other way round.
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

--- A rate a second, of powers of 1000: "300T", "3TB/s"; with `is_link` in bits or bytes, which it
--- must say: "100Gb" is 12.5e9 bytes. nil of anything else.
function sizes.rate(text, is_link)
  local number, prefix, unit = text:match "^([%d.]+)([kKMGT]?)([bB]?)"
  local rest = number and text:sub(#number + #prefix + #unit + 1)
  number = tonumber(number)
  if not number or number <= 0 or rest ~= "" and rest ~= "/s" then return nil end
  if is_link and unit == "" or not is_link and unit == "b" then return nil end
  for power, one in ipairs(UNITS) do
    if one == prefix:lower() then
      return number * 1000.0 ^ (power - 1) / (unit == "b" and 8 or 1)
    end
  end
end

-- Three digits.
local function digits_of(number)
  return (number >= 99.95) and 0 or number >= 9.995 and 1 or 2
end

--- "1.53 G": powers of 1000, three digits.
function sizes.count(number)
  local power = 1
  while number >= 999.5 and power < #UNITS do number, power = number / 1000, power + 1 end
  local digits = power == 1 and 0 or digits_of(number)
  return (("%%.%df %%s"):format(digits)):format(number, UNITS[power]:upper())
end

--- "1.53 GB".
function sizes.text(bytes) return sizes.count(bytes) .. "B" end

--- "12.5 ms".
function sizes.time(seconds)
  local unit, number = "us", seconds * 1e6
  if number >= 999.5 then unit, number = "ms", number / 1e3 end
  if unit == "ms" and number >= 999.5 then unit, number = "s", number / 1e3 end
  return (("%%.%df %%s"):format(digits_of(number))):format(number, unit)
end

return sizes
