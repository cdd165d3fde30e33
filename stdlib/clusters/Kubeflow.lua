--- stdlib/clusters/Kubeflow.lua: replicas of a PyTorchJob in Kubernetes, one rank per pod.
--
-- An MPIJob uses mpirun (MPI).
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local Kubeflow = ClusterEnvironment:extend "Kubeflow"

Kubeflow.comm = "ucx"
Kubeflow.starts = "replicas: %d in the PyTorchJob"

local WANTED <const> = { "KUBERNETES_SERVICE_HOST", "MASTER_ADDR", "WORLD_SIZE", "RANK" }

function Kubeflow:detect()
  for _, name in ipairs(WANTED) do
    if not self:variable(name) then return nil end
  end
  return ("KUBERNETES_SERVICE_HOST, WORLD_SIZE=%s, RANK=%s"):format(self:variable "WORLD_SIZE",
    self:variable "RANK")
end

function Kubeflow:world_size() return self:integer "WORLD_SIZE" or 1 end
function Kubeflow:global_rank() return self:integer "RANK" or 0 end
function Kubeflow:node_rank() return self:global_rank() end
function Kubeflow:num_nodes() return self:world_size() end

return Kubeflow
