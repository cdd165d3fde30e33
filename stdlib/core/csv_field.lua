-- stdlib/core/csv_field.lua: fields of CSV files as they are written.
--
-- Names are in quotes only where they must be; a text also where lt.csv.read would take it for a
-- number or for a missing value. From a name in quotes that needs none, the reader sees that a
-- program has quoted all fields, and does not take quotes for a sign of text then.

local csv_field = {}

--- Texts that stand for no value, unless the reader is given others.
csv_field.MISSING = { "", "NA", "N/A", "NaN", "nan", "null" }

local is_missing <const> = {}
for _, text in ipairs(csv_field.MISSING) do is_missing[text] = text ~= "" end

local function quoted(text) return '"' .. text:gsub('"', '""') .. '"' end

--- The field of a name, or of a value that may be read as any type.
function csv_field.name(text)
  local ends = text:find "^ " or text:find " $" or text:find "^\xef\xbb\xbf"
  return (ends or text:find '[",\r\n]') and quoted(text) or text
end

--- The field of a text, which is read as text.
function csv_field.text(text)
  local word = text:match "^%s*[+-]?(.-)%s*$":lower()
  if is_missing[text] or word:find "^%.?%d" or word == "inf" or word == "nan" then
    return quoted(text)
  end
  return csv_field.name(text)
end

return csv_field
