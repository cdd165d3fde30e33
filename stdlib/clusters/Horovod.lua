--- stdlib/clusters/Horovod.lua: ranks that horovodrun started without MPI (--gloo), which meet at
--- an address.
--
-- No built-in communication backend connects them, which is an error: otherwise each would train
-- alone. With MPI horovodrun calls mpirun, whose ranks are joined.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local Horovod = ClusterEnvironment:extend "Horovod"

function Horovod:detect()
  if not self:variable "HOROVOD_SIZE" or not self:variable "HOROVOD_RANK" then return nil end
  if self:world_size() == 1 then return nil, "HOROVOD_SIZE=1" end
  return ("HOROVOD_SIZE=%s, HOROVOD_RANK=%s"):format(self:variable "HOROVOD_SIZE",
    self:variable "HOROVOD_RANK")
end

function Horovod:world_size() return self:integer "HOROVOD_SIZE" or 1 end
function Horovod:global_rank() return self:integer "HOROVOD_RANK" or 0 end
function Horovod:local_rank() return self:integer "HOROVOD_LOCAL_RANK" or 0 end
function Horovod:node_rank() return self:integer "HOROVOD_CROSS_RANK" or 0 end
function Horovod:num_nodes() return self:integer "HOROVOD_CROSS_SIZE" end
function Horovod:main_address() return self:variable "HOROVOD_GLOO_RENDEZVOUS_ADDR" end
function Horovod:main_port() return self:integer "HOROVOD_GLOO_RENDEZVOUS_PORT" end

return Horovod
