--- stdlib/clusters/Local.lua: no launcher: this process forks its ranks.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local Local = ClusterEnvironment:extend "Local"

function Local:detect() return "no variables of a launcher" end

function Local:num_nodes() return 1 end

--- Any number of ranks can be forked; other machines need a launcher.
function Local:validate(devices, num_nodes)
  num_nodes = num_nodes or 1
  if num_nodes <= 1 then return nil end
  local count = math.tointeger(tonumber(devices or "")) or 1
  return ("num_nodes = %d, but no launcher started ranks on %d machines: %s, or srun --mpi=pmix")
    :format(num_nodes, num_nodes, self.starts:format(count * num_nodes))
end

return Local
