--- stdlib/apps/check/source/visit.lua: traverses a syntax tree in the order of the source.

-- Fields of nodes that hold nodes, or lists of them, as they stand in a source.
local FIELDS <const> = { "object", "fn", "condition", "key", "left", "operand", "right", "args",
  "items", "targets", "value", "values", "statements", "clauses", "body", "otherwise" }

local function visit(node, enter, above)
  if node.kind and enter(node, above) == false then return end
  for _, field in ipairs(FIELDS) do
    local item = node[field]
    if type(item) == "table" then
      if item.kind then
        visit(item, enter, node)
      else
        for _, child in ipairs(item) do visit(child, enter, node) end
      end
    end
  end
end

--- Calls enter(node, above) for the node and all below it; false: not those below it.
return visit
