--- stdlib/trainer/setup/devices.lua: which devices of a kind the Trainer's `devices` means, by
--- Lightning's rules.
--
--   3, "3"          the first three          {0, 2}, "0, 2"   these
--   -1, "-1"        all                      "2,"             number 2 alone

local NUMBERS <const> = "must be a list of distinct numbers from 0 to %d"

-- {0, 1, .. n - 1}
local function first(n)
  local list = {}
  for k = 1, n do list[k] = k - 1 end
  return list
end

-- "1, 3" and "2,": the numbers; nil: other words stand there.
local function split(text)
  local list = {}
  for word in (text:gsub(",%s*$", "") .. ","):gmatch "([^,]*)," do
    local number = math.tointeger(tonumber((word:match "^%s*(%d+)%s*$")))
    if not number then return nil end
    list[#list + 1] = number
  end
  return list
end

local function of_list(list, available)
  local seen, n = {}, 0
  for _ in next, list do n = n + 1 end
  if n == 0 then return nil, "the list is empty: write how many, or 'auto'" end
  for k = 1, n do
    local number = math.tointeger(list[k])
    if type(list[k]) ~= "number" or not number or number < 0 or seen[number] then
      return nil, NUMBERS:format(available - 1)
    elseif number >= available then
      return nil, ("device %d does not exist: there are 0 to %d"):format(number, available - 1)
    end
    seen[number] = true
  end
  return list
end

local function of_count(count, available)
  if count == -1 then return first(available) end
  if count < 1 then return nil, "write how many (-1: all), or a list of numbers like {0, 2}" end
  if count > available then return nil, ("there %s %d"):format(available == 1 and "is" or "are",
    available) end
  return first(count)
end

--- Returns the list of device numbers, from 0, of `available` ones; "auto" means all, or with `one`
--- the first. nil and why not.
return function(value, available, one)
  if type(value) == "table" then return of_list(value, available) end
  if type(value) == "string" then
    local text = value:match "^%s*(.-)%s*$"
    if text == "auto" then return first(one and 1 or available) end
    local list = text:find "," and split(text)
    if list then return of_list(list, available) end
    value = text:match "^-?%d+$" and text
  end
  local count = math.tointeger(tonumber(value))
  if not count then
    return nil, "write how many (-1: all), 'auto', or a list of numbers like {0, 2} or '0, 2'"
  end
  return of_count(count, available)
end
