-- stdlib/core/has_method.lua: whether a value can be asked by a method of this name. Objects of
-- users count by what they can do, not by their class.

return function(value, name)
  return type(value) == "table" and type(value[name]) == "function"
end
