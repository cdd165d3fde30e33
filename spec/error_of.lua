-- spec/error_of.lua: error_of(fn, ...): what fn raises; it must.
return function(fn, ...)
  local ok, message = pcall(fn, ...)
  require("luassert").is_false(ok)
  return message
end
