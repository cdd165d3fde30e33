--- stdlib/check/checks/library_name.lua: lt.nn.Linaer: names that the library does not have.
local errors = require "ltrain.core.errors"
local resolve = require "ltrain.check.source.resolve"
local visit = require "ltrain.check.source.visit"

-- Names that a table of the library has, or would have when they are asked for.
local function names_of(object)
  local names = {}
  for key in next, object do
    if type(key) == "string" then names[#names + 1] = key end
  end
  local meta = getmetatable(object)
  if type(meta) == "table" and rawget(meta, "__pairs") then
    for key, value in pairs(object) do
      local name = type(key) == "string" and key or value
      if type(name) == "string" then names[#names + 1] = name end
    end
  end
  return names
end

return {
  source = function(context)
    local given = {}
    visit(context.source.tree, function(node)
      if node.kind == "assign" then
        for _, target in ipairs(node.targets) do given[target] = true end
      end
      if node.kind ~= "index" or given[node] or node.key.kind ~= "string" then return end
      local object, name = resolve(node.object)
      if type(object) ~= "table" or rawget(object, "__name") then return end
      local key = node.key.value
      local ok, value = pcall(function() return object[key] end)
      if ok and value ~= nil or context.report:has(node.line) then return end
      local said = not ok and tostring(value) or ""
      local near = errors.nearest(key, names_of(object)) or said:match "did you mean '([%w_]+)'"
      local instead = said:match "; write (.+)$" or near and ("%s.%s"):format(name, near)
      context.report:error("library_name", node.line, ("%s has no '%s'"):format(name, key),
        instead and "write " .. instead or "see its page in the reference")
    end)
  end,
}
