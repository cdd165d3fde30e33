--- stdlib/core/is_float.lua: whether a dtype is a floating one.
local dtypes = require "ltrain.core.dtypes"

--- is_float("bf16") -> true
return function(name)
  local dtype = dtypes[name]
  return dtype ~= nil and dtype.category == "floating"
end
