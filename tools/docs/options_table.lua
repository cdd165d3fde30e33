-- tools/docs/options_table.lua: rows of config.check as a table of a page.
local markdown = require "markdown"
local option_text = require "ltrain.apps.prompt.option_text"
local source = require "source"

local function default_text(row)
  if row.required then return "required" end
  local text = option_text.default(row)
  return text and markdown.code(text) or ""
end

--- `text` is that of the file with the rows: it says their order. `what`: "of a call".
return function(options, text, what)
  local rows = {}
  for i, name in ipairs(source.order(text, options)) do
    local row = options[name]
    rows[i] = { markdown.code(name), option_text.type(row), default_text(row), row.doc or "" }
  end
  local title <const> = what and "option " .. what or "option"
  return markdown.table({ title, "type", "default", "meaning" }, rows)
end
