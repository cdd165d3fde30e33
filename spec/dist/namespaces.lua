-- spec/dist/namespaces.lua: whether hosts can be made of network namespaces here, for ranks of MPI.
local c = require "ltrain.c"
local mpirun = require "ltrain.clusters.mpirun"

local process = c.runtime.process

local namespaces = {}

--- Why not, or nil; `programs` are wanted besides.
function namespaces.missing(programs)
  for _, name in ipairs { "ip", "nsenter", "unshare", table.unpack(programs) } do
    if not process.find(name) and not c.io.kind("/usr/sbin/" .. name) then
      return name .. " is not there"
    end
  end
  if not process.is_root() then return "only root makes network namespaces" end
  if process.capture({ "unshare", "--net", "--uts", "--mount", "true" }, 10) ~= 0 then
    return "network namespaces are refused here"
  end
  return mpirun.missing()
end

return namespaces
