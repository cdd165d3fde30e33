--- stdlib/check/checks/index.lua: batch[0]: positions count from 1.
local visit = require "ltrain.check.source.visit"

return {
  source = function(context)
    visit(context.source.tree, function(node)
      if node.kind ~= "index" or node.key.kind ~= "number" or node.key.value ~= 0 then return end
      local object = node.object
      if object.kind ~= "name" or object.name ~= "batch" then return end
      if context.report:has(node.line) then return end
      context.report:error("index", node.line, "batch[0] is nil: positions count from 1",
        "write batch[1] for the first part of a batch")
    end)
  end,
}
