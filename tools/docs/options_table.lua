-- tools/docs/options_table.lua: rows of config.check as a table of a page.
local markdown = require "markdown"
local source = require "source"

local TYPES <const> = {
  any = "any", boolean = "boolean", ["function"] = "function", integer = "integer",
  number = "number", object = "object", pair = "integer or {h, w}",
  each = "integer or list", string = "string",
  table = "table", tensor = "tensor",
}

local function type_text(row)
  local words = {}
  if row.choices then
    for i, choice in ipairs(row.choices) do words[i] = markdown.value(choice) end
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

local function default_text(row)
  if row.required then return "required" end
  if row.default == nil then return "" end
  return markdown.code(markdown.value(row.default))
end

--- `text` is that of the file with the rows: it says their order.
return function(options, text)
  local rows = {}
  for i, name in ipairs(source.order(text, options)) do
    local row = options[name]
    rows[i] = { markdown.code(name), type_text(row), default_text(row), row.doc or "" }
  end
  return markdown.table({ "option", "type", "default", "meaning" }, rows)
end
