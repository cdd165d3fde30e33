-- stdlib/core/closed.lua: a room that is a plain table: an unknown name of it is an error.

local errors = require "ltrain.core.errors"

--- The room, with that; any other value, and a table with a metatable, as it is. `name` begins the
--- text of the error.
return function(room, name)
  if type(room) ~= "table" or getmetatable(room) ~= nil then return room end
  return setmetatable(room, { __index = function(_, key)
    if type(key) ~= "string" then return nil end
    local names = {}
    for known in next, room do names[#names + 1] = known end
    table.sort(names)
    errors.blame("%s: there is no '%s'%s", name, key, errors.in_place_of(key, name, names))
  end })
end
