--- stdlib/loggers/checked_io.lua: raises where a file operation of a logger fails.
local errors = require "ltrain.core.errors"

--- Returns `value`, or raises `message` when there is none: checked_io(c.io.read_file(path)).
return function(value, message)
  if not value then errors.blame("logger: %s", message) end
  return value
end
