--- stdlib/clusters/known.lua: the environments that are looked for, in order.
--
-- torchrun before srun, which may have started it; mpirun before srun, whose variables it hands on.
local known = {
  classes = {}, -- those that scripts registered, the newest first: { name =, class = }
  current = nil, -- { environment, evidence, seen } of this process, when it was asked for
}

local BUILT_IN <const> = { "TorchElastic", "MPI", "SLURM", "LSF", "Kubeflow" }

--- All classes in the order in which they are asked; the last one always says yes.
function known.list()
  local list = table.move(known.classes, 1, #known.classes, 1, {})
  for _, name in ipairs(BUILT_IN) do
    list[#list + 1] = { name = name, class = require("ltrain.clusters." .. name) }
  end
  list[#list + 1] = { name = "Local", class = require "ltrain.clusters.Local" }
  return list
end

return known
