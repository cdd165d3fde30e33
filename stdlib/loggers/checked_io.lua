--- stdlib/loggers/must.lua: a file operation that a logger cannot do without.
local errors = require "ltrain.core.errors"

--- Returns `value`, or raises `message` when there is none: must(c.io.read_file(path)).
return function(value, message)
  if not value then errors.blame("logger: %s", message) end
  return value
end
