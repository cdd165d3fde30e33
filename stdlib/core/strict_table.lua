-- stdlib/core/strict_table.lua: a table of public functions that raises on unknown names.

local errors = require "ltrain.core.errors"

local strict_table

-- The names of `functions`, and of what is loaded later.
local function names_of(functions, later)
  local names = {}
  for name in next, functions do names[#names + 1] = name end
  for name in next, later do
    if rawget(functions, name) == nil then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- Makes `functions` strict and returns it; other values, and a table with a metatable, are
--- returned unchanged. `name` begins the error message. `later`: functions that return further
--- tables, by name, called when one is first asked for.
function strict_table(functions, name, later)
  if type(functions) ~= "table" or getmetatable(functions) ~= nil then return functions end
  local mt = { __index = function(_, key)
    if type(key) ~= "string" then return nil end
    if later and later[key] then
      local value = strict_table(later[key](), name .. "." .. key)
      rawset(functions, key, value)
      return value
    end
    local names = names_of(functions, later or {})
    errors.blame("%s: there is no '%s'%s", name, key, errors.in_place_of(key, name, names))
  end }
  if later then mt.__pairs = function() return next, names_of(functions, later) end end
  return setmetatable(functions, mt)
end

return strict_table
