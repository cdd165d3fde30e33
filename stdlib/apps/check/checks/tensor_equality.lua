--- stdlib/apps/check/checks/tensor_equality.lua: == between results that are tensors: it compares
--- identities.
local visit = require "ltrain.apps.check.source.visit"

-- Methods that give tensors, and that tables of scripts hardly have.
local TENSORS <const> = {}
for name in ("argmax argmin softmax sigmoid log_softmax squeeze unsqueeze flatten round float long "
  .. "detach gt lt ge le clamp cumsum"):gmatch "%S+" do
  TENSORS[name] = true
end

local function is_tensor(node)
  return node.kind == "call" and node.method and TENSORS[node.method]
end

return {
  source = function(context)
    visit(context.source.tree, function(node)
      if node.kind ~= "binary" or node.operator ~= "==" and node.operator ~= "~=" then return end
      local side = is_tensor(node.left) and node.left or is_tensor(node.right) and node.right
      local other = side == node.left and node.right or node.left
      if not side or other.kind == "constant" or other.kind == "string" then return end
      context.report:error("equality", node.line, ("%s compares whether both are the same tensor, "
        .. "not their values; one is the result of %s"):format(node.operator, side.method),
        node.operator == "==" and "write a:eq(b), one truth value for each element, or a:equal(b)"
          or "write a:ne(b), one truth value for each element, or not a:equal(b)")
    end)
  end,
}
