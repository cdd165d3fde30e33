--- stdlib/clusters/Torch.lua: ranks with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set by hand,
--- as for PyTorch's `init_method="env://"`. LOCAL_RANK is optional.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local Torch = ClusterEnvironment:extend "Torch"

Torch.comm = "ucx"
Torch.starts = "WORLD_SIZE=%d"

local WANTED <const> = { "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT" }

function Torch:detect()
  for _, name in ipairs(WANTED) do
    if not self:variable(name) then return nil end
  end
  if self:world_size() == 1 then return nil, "WORLD_SIZE=1" end
  return ("WORLD_SIZE=%s, RANK=%s, MASTER_ADDR, MASTER_PORT"):format(self:variable "WORLD_SIZE",
    self:variable "RANK")
end

function Torch:world_size() return self:integer "WORLD_SIZE" or 1 end
function Torch:global_rank() return self:integer "RANK" or 0 end
function Torch:local_rank() return self:integer "LOCAL_RANK" or 0 end
function Torch:node_rank() return self:integer("GROUP_RANK", "NODE_RANK") or 0 end

function Torch:num_nodes()
  local each = self:integer "LOCAL_WORLD_SIZE"
  return each and each > 0 and self:world_size() % each == 0 and self:world_size() // each or nil
end

return Torch
