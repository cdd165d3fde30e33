--- stdlib/apps/prompt/tensor_page.lua: rows of docs/reference/tensor.md, which is part of the
--- library: on functions and methods that are written in C and are not operations.
local c = require "ltrain.c"

local tensor_page = {}

-- Names -> { cell =, text =, options = a set }, made at first use.
local rows

-- The plain text of a cell: links without their addresses, marks left out.
local function plain(text)
  return (text:gsub("%[([^%]]*)%]%([^)]*%)", "%1"):gsub("`", ""):gsub("\\|", "|"))
end

-- The options that a row speaks of: `{rtol = 1e-5}` in a call, `a` and `b` behind "Options:".
local function options_of(cell, text, creates)
  local set = creates and { dtype = true, device = true, requires_grad = true } or {}
  for list in cell:gmatch "{([^}]*)}" do
    for name in list:gmatch "([%a_][%w_]*)%s*=" do set[name] = true end
  end
  for name in (text:match "Options: (.*)" or ""):gmatch "`([%a_][%w_]*)`" do set[name] = true end
  return set
end

local function read()
  local found, creates = {}, false
  for line in ((c.runtime.asset "tensor.md" or "") .. "\n"):gmatch "(.-)\n" do
    creates = line:find "^## " and line:find "Creating" ~= nil or creates and not line:find "^## "
    local cell, text = line:match "^| (`.-) | (.*) |$"
    local row = cell and { cell = plain(cell), text = plain(text) }
    if row then row.options = options_of(cell, text, creates) end
    for owner, name in (row and cell .. (text:match "also.*" or "") or ""):gmatch
      "`(%a+)[.:]([%w_]+)" do
      found[name] = found[name] or row
      if owner == "lt" then found["lt." .. name] = row end
    end
  end
  return found
end

--- The row on a name (`zeros`, `item`), of several the one on the function of lt where `of_lt`:
--- cell = the calls, text, options = a set; nil without one.
function tensor_page.row(name, of_lt)
  rows = rows or read()
  return of_lt and rows["lt." .. name] or rows[name]
end

return tensor_page
