-- tools/docs/methods.lua: the commented functions of a file as a list of a page.
local reference_section = require "ltrain.apps.prompt.reference_section"

local function lines_of(list)
  local lines = {}
  for _, method in ipairs(list) do
    local line = ("- `%s`"):format(method.call)
    if method.doc ~= "" then line = line .. ": " .. method.doc end
    for _, param in ipairs(method.params) do line = line .. (" `%s`"):format(param) end
    lines[#lines + 1] = line
  end
  return #lines > 0 and table.concat(lines, "\n") or nil
end

--- The list, nil when there is nothing to list. `object` stands before the names of methods,
--- `class` before those of functions.
return function(file, object, class)
  return lines_of(reference_section.methods(file, object, class))
end
