-- stdlib/core/is_callable.lua: whether a value is a function or an object that can be called.

return function(value)
  local meta = getmetatable(value)
  return type(value) == "function" or type(meta) == "table" and meta.__call ~= nil
end
