--- stdlib/clusters/TorchElastic.lua: ranks started by torchrun. No built-in comm backend connects
--- them.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local TorchElastic = ClusterEnvironment:extend "TorchElastic"

function TorchElastic:detect()
  local id = self:variable "TORCHELASTIC_RUN_ID"
  return id and ("TORCHELASTIC_RUN_ID=%s, WORLD_SIZE=%s, RANK=%s"):format(id,
    self:variable "WORLD_SIZE" or "", self:variable "RANK" or "")
end

function TorchElastic:world_size() return self:integer "WORLD_SIZE" or 1 end
function TorchElastic:global_rank() return self:integer "RANK" or 0 end
function TorchElastic:local_rank() return self:integer "LOCAL_RANK" or 0 end
function TorchElastic:node_rank() return self:integer "GROUP_RANK" or 0 end

function TorchElastic:num_nodes()
  local each = self:integer "LOCAL_WORLD_SIZE"
  return each and each > 0 and self:world_size() % each == 0 and self:world_size() // each or nil
end

return TorchElastic
