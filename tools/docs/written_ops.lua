-- tools/docs/written_ops.lua: the operations of stdlib/ops, from the comments of their files.
local exports = require "ltrain.core.exports"
local lt = require "ltrain"
local markdown = require "markdown"
local options_table = require "options_table"
local source = require "source"
local tree = require "ltrain.core.tree"

-- What the file says of the function `field`, or of the one that it returns.
local function entry_of(file, field)
  for _, entry in ipairs(file.functions) do
    if entry.doc and entry.name == (field ~= "" and field or nil) then return entry end
  end
  error("written_ops: " .. file.path .. " says nothing of " .. field)
end

local function section(root, name, place)
  local path, field = place:match "^ltrain%.(ops%.[%w_]+):?(.*)$"
  local file = source.read(root .. "stdlib/" .. path:gsub("%.", "/") .. ".lua")
  local entry, options = entry_of(file, field), source.options_of(lt[name])
  local parts = { "### " .. name, ("`lt.%s(%s)`"):format(name, entry.arguments), entry.doc }
  if #entry.params > 0 then
    parts[#parts + 1] = "Arguments: `" .. table.concat(entry.params, "`, `") .. "`"
  end
  if options then parts[#parts + 1] = options_table(options, file.text) end
  return markdown.join(parts)
end

return function(root)
  local parts = { "## Images, bags of embeddings, products of several dims" }
  for name, place in tree.pairs(exports) do
    if place:find "^ltrain%.ops%." then parts[#parts + 1] = section(root, name, place) end
  end
  return markdown.join(parts)
end
