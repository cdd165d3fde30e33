--- stdlib/apps/check/source/calls.lua: whether a part of a script calls one of the methods.
local visit = require "ltrain.apps.check.source.visit"

--- calls(node, "zero_grad", ...) -> boolean
return function(tree, ...)
  local names, found = {}, false
  for _, name in ipairs { ... } do names[name] = true end
  visit(tree, function(node)
    found = found or node.kind == "call" and names[node.method] or false
    return not found
  end)
  return found
end
