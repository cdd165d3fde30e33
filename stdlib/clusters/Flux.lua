--- stdlib/clusters/Flux.lua: tasks started by `flux run`. No built-in comm backend connects them.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local Flux = ClusterEnvironment:extend "Flux"

function Flux:detect()
  local rank = self:variable "FLUX_TASK_RANK"
  if not rank then return nil end
  if self:world_size() == 1 then return nil, "a single task of Flux" end
  return ("FLUX_TASK_RANK=%s, FLUX_JOB_SIZE=%d"):format(rank, self:world_size())
end

function Flux:world_size() return self:integer "FLUX_JOB_SIZE" or 1 end
function Flux:global_rank() return self:integer "FLUX_TASK_RANK" or 0 end
function Flux:local_rank() return self:integer "FLUX_TASK_LOCAL_ID" or 0 end
function Flux:node_rank() return nil end
function Flux:num_nodes() return self:integer "FLUX_JOB_NNODES" end

return Flux
