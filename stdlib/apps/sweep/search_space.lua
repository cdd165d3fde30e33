--- stdlib/apps/sweep/search_space.lua: the search space of a sweep: `--lr 1e-4,1e-3 --width
--- 64..512`.
--
-- A draw depends on the seed, the number of the trial and the name alone: a second call with more
-- trials begins with those of the first.
local c = require "ltrain.c"

local search_space = {}

local LOG_RATIO <const> = 10 -- between the ends of a range that is drawn in logarithms

-- "a..b" as {low, high, whole = both are whole numbers, log = whether logarithms are drawn}; nil
-- where it is none, nil and what is wrong.
local function range_of(name, text)
  local from, to = text:match "^(.-)%.%.(.+)$"
  if not from then return nil end
  local low, high = tonumber(from), tonumber(to)
  if not low or not high then return nil end
  if low >= high or high == math.huge then
    return nil, ("--%s: a range goes from a number to a larger one: got %s"):format(name, text)
  end
  return { low, high, whole = math.type(low) == "integer" and math.type(high) == "integer",
    log = low > 0 and high / low >= LOG_RATIO }
end

-- The texts between commas, or between semicolons where there are any.
local function list_of(text)
  local list = {}
  local separator = text:find(";", 1, true) and ";" or ","
  for one in (text .. separator):gmatch("(.-)" .. separator) do list[#list + 1] = one end
  return list
end

--- Flags as a space: {names = swept ones, sorted, values = name -> list, ranges = name -> range,
--- fixed = name -> text}. Nil and what is wrong.
---@param flags table a list of {name =, text =}
function search_space.read(flags)
  local of = { names = {}, values = {}, ranges = {}, fixed = {} }
  for _, flag in ipairs(flags) do
    local text = flag.text or "true"
    local range, message = range_of(flag.name, text)
    if message then return nil, message end
    local list = list_of(text)
    if of.values[flag.name] or of.ranges[flag.name] or of.fixed[flag.name] then
      return nil, ("--%s is given twice"):format(flag.name)
    end
    if range then
      of.ranges[flag.name] = range
    elseif #list > 1 then
      of.values[flag.name] = list
    else
      of.fixed[flag.name] = list[1]
    end
    if range or #list > 1 then of.names[#of.names + 1] = flag.name end
  end
  table.sort(of.names)
  return of
end

--- Whether a grid goes over all of it.
function search_space.is_finite(of) return next(of.ranges) == nil end

--- All combinations of the values, the last name's going round fastest.
function search_space.grid(of)
  local list = { {} }
  for _, name in ipairs(of.names) do
    local longer = {}
    for _, one in ipairs(list) do
      for _, value in ipairs(of.values[name]) do
        local more = { [name] = value }
        for key, kept in next, one do more[key] = kept end
        longer[#longer + 1] = more
      end
    end
    list = longer
  end
  return list
end

-- A number from 0 to below 1 of a text, the first 52 bits of its SHA-256.
local function fraction(text)
  return tonumber(c.runtime.sha256 { text }:sub(1, 13), 16) / 2.0 ^ 52
end

local function number_in(range, at)
  local low, high = range[1], range[2] + (range.whole and 1 or 0)
  local value = range.log and low * (high / low) ^ at or low + (high - low) * at
  if range.whole then return ("%d"):format(math.min(value // 1 | 0, range[2])) end
  return ("%.4g"):format(value)
end

--- The values of trial `number` of a random sweep, name -> text.
function search_space.draw(of, seed, number)
  local _ <close> = c.runtime.plain_locale()
  local values = {}
  for _, name in ipairs(of.names) do
    local at = fraction(("%d %d %s"):format(seed, number, name))
    local list = of.values[name]
    values[name] = list and list[at * #list // 1 + 1 | 0] or number_in(of.ranges[name], at)
  end
  return values
end

return search_space
