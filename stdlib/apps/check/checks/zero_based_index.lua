--- stdlib/apps/check/checks/zero_based_index.lua: checks for positions counted from 0: batch[0],
--- x.shape[-1].
local visit = require "ltrain.apps.check.source.visit"

return {
  source = function(context)
    visit(context.source.tree, function(node)
      local object, key = node.object, node.kind == "index" and node.key
      if not key or context.report:has(node.line) then return end
      local is_size = object.kind == "index" and object.key.value == "shape"
      local is_last = key.kind == "unary" and key.operator == "-" and key.operand.value == 1
      if is_size and is_last then
        context.report:error("index", node.line, "shape[-1] is nil: sizes count from 1",
          "write x:size(-1) for the last")
      end
      if key.kind ~= "number" or key.value ~= 0 then return end
      if object.kind ~= "name" or object.name ~= "batch" then return end
      context.report:error("index", node.line, "batch[0] is nil: positions count from 1",
        "write batch[1] for the first part of a batch")
    end)
  end,
}
