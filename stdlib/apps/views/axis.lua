--- stdlib/apps/views/axis.lua: tick labels of charts: round numbers, with as many digits as
--- distinguish them.
local c = require "ltrain.c"

local axis = {}

local LARGE <const>, DECIMALS <const> = 6, 4 -- digits up to which a label has no exponent
local FEW <const>, LONG <const> = 3, 12 -- decades: labels at 1, 2, 5; minor ticks

local function plain(text) return (text:gsub("e([+-])0+(%d)", "e%1%2"):gsub("e%+", "e")) end

--- A value in five digits.
function axis.text(value)
  local _ <close> = c.runtime.plain_locale()
  return plain(("%.5g"):format(value))
end

-- The power of ten that a number's first digit stands for.
local function place_of(value) return math.floor(math.log(math.abs(value), 10) + 1e-9) end

local function without_zeros(text)
  local digits, exponent = text:match "^([^e]*)(.*)$"
  if digits:find(".", 1, true) then digits = digits:gsub("0+$", ""):gsub("%.$", "") end
  return (digits == "-0" and "0" or digits) .. exponent
end

-- A number up to the digit that stands for 10 ^ place.
local function in_digits(value, place, scientific)
  if value == 0 then return "0" end
  local digits = scientific and place_of(value) - place or -place
  local format = ("%%.%d%s"):format(math.max(0, math.min(digits, 17)), scientific and "e" or "f")
  return without_zeros(plain(format:format(value)))
end

--- Texts of values that are `step` apart, with as many digits as tell them apart; all with an
--- exponent where that is shorter.
function axis.labels(values, step)
  local _ <close> = c.runtime.plain_locale()
  local place, largest = place_of(step), -math.huge
  local lists, widths = { {}, {} }, { 0, 0 }
  for i, value in ipairs(values) do
    if value ~= 0 then largest = math.max(largest, place_of(value)) end
    for k = 1, 2 do
      lists[k][i] = in_digits(value, place, k == 2)
      widths[k] = math.max(widths[k], #lists[k][i])
    end
  end
  local is_plain = largest < LARGE and place >= -DECIMALS or widths[1] <= widths[2]
  return lists[is_plain and 1 or 2]
end

-- The next of 1, 2, 5, 10, ... times a power of 10 from `step` on.
local function round_step(step)
  local power = 10.0 ^ math.floor(math.log(step, 10))
  for _, factor in ipairs { 1, 2, 5 } do
    if factor * power >= step * 0.999 then return factor * power end
  end
  return 10 * power
end

-- Round numbers between two, about `count` of them, and how far they are apart.
local function round_numbers(from, to, count)
  local step, list = round_step((to - from) / count), {}
  local first = math.ceil(from / step - 1e-9)
  for k = first, first + 4 * count do
    if k * step > to + step * 1e-9 then break end
    list[#list + 1] = k == 0 and 0.0 or k * step
  end
  return list, step
end

local function linear(from, to, count)
  local list, step = round_numbers(from, to, count)
  local texts = axis.labels(list, step)
  for i, value in ipairs(list) do list[i] = { at = value, text = texts[i] } end
  return list
end

-- Powers of 10, with 2 and 5 times them on a short axis; those between have no text. nil: too few.
local function logarithmic(from, to, count)
  local list, labelled, every = {}, 0, math.max(1, math.ceil((to - from) / (2 * count)))
  for power = math.floor(from), math.ceil(to) do
    for k = 1, 9 do
      local at = power + math.log(k, 10)
      local is_major = k == 1 and power % every == 0
        or to - from <= FEW and (k == 2 or k == 5)
      local shown = is_major or to - from <= LONG
      if shown and at >= from - 1e-9 and at <= to + 1e-9 then
        labelled = labelled + (is_major and 1 or 0)
        list[#list + 1] = { at = at, text = is_major and axis.text(k * 10.0 ^ power) or nil }
      end
    end
  end
  return labelled >= 2 and list or nil
end

--- Ticks between two values, about `count` of them with a text: {at =, text =}. With `log` both are
--- logarithms, and minor ticks without a text stand between the others.
function axis.ticks(from, to, count, log)
  if not log then return linear(from, to, count) end
  local list = logarithmic(from, to, count)
  if list then return list end
  list = linear(10.0 ^ from, 10.0 ^ to, count)
  for _, tick in ipairs(list) do tick.at = math.log(tick.at, 10) end
  return list
end

--- The texts of the two ends of an axis.
function axis.ends(from, to, log)
  if log then
    if to - from > 1 then return axis.text(10.0 ^ from), axis.text(10.0 ^ to) end
    from, to = 10.0 ^ from, 10.0 ^ to
  end
  local texts = axis.labels({ from, to }, (to - from) / 1000)
  return texts[1], texts[2]
end

return axis
