--- stdlib/apps/views/bar_rows.lua: horizontal bars in a terminal, each with its name and value.

local EIGHTHS <const> = { "▏", "▎", "▍", "▌", "▋", "▊", "▉" }
local LONGEST <const> = 24 -- letters of a name

local function shorten(label)
  if (utf8.len(label) or 0) <= LONGEST then return label end
  return label:sub(1, utf8.offset(label, LONGEST) - 1) .. "."
end

-- A bar of so many letters, a fraction.
local function bar_text(length, letters)
  if letters then return ("#"):rep((length + 0.5) // 1 | 0) end
  local eighths = (length * 8 + 0.5) // 1 | 0
  return ("█"):rep(eighths // 8) .. (EIGHTHS[eighths % 8] or "")
end

--- The rows of bars {label =, value =, text =}. o: width in letters, title, letters.
return function(bars, o)
  local out, low, high, wide, said = { o.title ~= "" and o.title or nil }, 0, 0, 0, 0
  for _, bar in ipairs(bars) do
    low, high = math.min(low, bar.value), math.max(high, bar.value)
    wide = math.max(wide, utf8.len(shorten(bar.label)) or #bar.label)
    said = math.max(said, #bar.text)
  end
  local columns = math.max(o.width - wide - said - 5, 8)
  local scale = high > low and columns / (high - low) or 0
  local zero = (-low * scale + 0.5) // 1 | 0
  for _, bar in ipairs(bars) do
    local label = shorten(bar.label)
    local text
    if bar.value < 0 then
      local length = math.max((-bar.value * scale + 0.5) // 1 | 0, 0)
      text = (" "):rep(zero - length) .. (o.letters and "#" or "█"):rep(length)
    else
      text = (" "):rep(zero) .. bar_text(bar.value * scale, o.letters)
    end
    out[#out + 1] = ("%s%s %s%s %s"):format((" "):rep(wide - (utf8.len(label) or #label)), label,
      o.letters and "|" or "│", text, bar.text)
  end
  if #bars == 0 then out[#out + 1] = "  (nothing to draw)" end
  return out
end
