-- stdlib/core/strict_table.lua: a table of public functions that raises on unknown names.

local errors = require "ltrain.core.errors"

--- Makes `functions` strict and returns it; other values, and a table with a metatable, are
--- returned unchanged. `name` begins the error message.
return function(functions, name)
  if type(functions) ~= "table" or getmetatable(functions) ~= nil then return functions end
  return setmetatable(functions, { __index = function(_, key)
    if type(key) ~= "string" then return nil end
    local names = {}
    for known in next, functions do names[#names + 1] = known end
    table.sort(names)
    errors.blame("%s: there is no '%s'%s", name, key, errors.in_place_of(key, name, names))
  end })
end
