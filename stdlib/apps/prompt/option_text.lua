--- stdlib/apps/prompt/option_text.lua: describes a row of core/config.lua: for `:help`, and for
--- tools/docs/options_table.lua.
local option_text = {}

--- A value as Lua writes it.
function option_text.value(value)
  if type(value) == "string" then return ("'%s'"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, element in ipairs(value) do parts[i] = option_text.value(element) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local TYPES <const> = {
  any = "any", boolean = "boolean", ["function"] = "function", integer = "integer",
  number = "number", object = "object", pair = "integer or {h, w}",
  each = "integer or list", string = "string",
  table = "table", tensor = "tensor",
}

--- The type of an option in words, with its bounds.
function option_text.type(row)
  local words = {}
  if row.choices then
    for i, choice in ipairs(row.choices) do words[i] = option_text.value(choice) end
  else
    for word in (row.type or "any"):gmatch("[^|]+") do words[#words + 1] = TYPES[word] end
  end
  local text = table.concat(words, " or ")
  for _, bound in ipairs { { "min", "≥" }, { "above", ">" }, { "max", "≤" }, { "below", "<" } } do
    local limit = row[bound[1]]
    if limit then text = ("%s %s %s"):format(text, bound[2], limit) end
  end
  return text
end

--- The default as it is written; nil: there is none.
function option_text.default(row)
  if row.default ~= nil then return option_text.value(row.default) end
end

return option_text
