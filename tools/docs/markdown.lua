-- tools/docs/markdown.lua: pieces of a page.
local markdown = {}

--- Text that a cell of a table can hold.
function markdown.cell(text)
  return (tostring(text):gsub("|", "\\|"):gsub("\n", " "))
end

function markdown.code(text)
  return "`" .. text .. "`"
end

--- A table: names of the columns, rows of texts.
function markdown.table(columns, rows)
  local lines = {
    "| " .. table.concat(columns, " | ") .. " |",
    "|" .. (" --- |"):rep(#columns),
  }
  for _, row in ipairs(rows) do
    local cells = {}
    for i = 1, #columns do cells[i] = markdown.cell(row[i]) end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(lines, "\n")
end

--- Paragraphs with a blank line between them.
function markdown.join(parts)
  return table.concat(parts, "\n\n")
end

return markdown
