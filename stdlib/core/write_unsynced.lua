--- stdlib/core/write_unsynced.lua: writes a file without fsync: it may be lost when the machine
--- stops.
--
-- c.io.write_file waits until the disk has the file, which takes longer than to make a picture:
-- who writes a data set of images, or logs one a step, would wait most of the time.
local c = require "ltrain.c"

--- Replaces the file, if there is one. Returns true, or nil and the reason, which begins with `who`
--- ("write").
return function(path, bytes, who)
  local kind = c.io.kind(path)
  if kind and kind ~= "file" then return c.io.write_file(path, bytes, who) end -- which refuses it
  if kind then
    local ok, message = c.io.remove(path) -- whoever has it open keeps reading that
    if not ok then return nil, message end
  end
  return c.io.append_file(path, bytes, who)
end
