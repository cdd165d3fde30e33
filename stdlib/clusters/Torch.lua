--- stdlib/clusters/Torch.lua: ranks with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set by hand,
--- as for PyTorch's `init_method="env://"`. LOCAL_RANK is optional. MASTER_ADDR may be a file that
--- all ranks can read, "file:///shared/job1", as for its `init_method="file://..."`: rank 0 writes
--- its address and a free port there, and MASTER_PORT is not used.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local Torch = ClusterEnvironment:extend "Torch"

Torch.comm = "ucx"
Torch.starts = "WORLD_SIZE=%d"

local WANTED <const> = { "RANK", "WORLD_SIZE", "MASTER_ADDR" }

function Torch:detect()
  for _, name in ipairs(WANTED) do
    if not self:variable(name) then return nil end
  end
  local address = self:variable "MASTER_ADDR"
  local is_file = address:find "^file:" ~= nil
  if not is_file and not self:variable "MASTER_PORT" then return nil end
  if self:world_size() == 1 then return nil, "WORLD_SIZE=1" end
  return ("WORLD_SIZE=%s, RANK=%s, MASTER_ADDR%s"):format(self:variable "WORLD_SIZE",
    self:variable "RANK", is_file and "=" .. address or ", MASTER_PORT")
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
