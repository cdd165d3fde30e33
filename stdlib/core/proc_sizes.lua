-- stdlib/core/proc_sizes.lua: reads sizes from a file of /proc.
local c = require "ltrain.c"

--- The lines "name: number kB" of a file of /proc, in bytes by their names; none where there is no
--- such file.
return function(path)
  local sizes = {}
  for name, size in (c.io.read_file(path) or ""):gmatch "(%w+):%s+(%d+) kB" do
    sizes[name] = tonumber(size) * 1024
  end
  return sizes
end
