--- stdlib/clusters/MPI.lua: ranks started by mpirun.
--
-- Only Open MPI's mpirun; that of another MPI (MPICH, Intel) is an error, because Open MPI would
-- treat each of its ranks as a job of one rank.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local MPI = ClusterEnvironment:extend "MPI"

MPI.comm = "mpi"

local function is_open(self) return self:variable "OMPI_COMM_WORLD_SIZE" ~= nil end

-- The process managers of other MPIs; srun sets the same names.
local function is_other(self)
  return self:variable "PMI_SIZE" and self:variable "PMI_RANK" and not self:variable "SLURM_PROCID"
end

function MPI:detect()
  if is_open(self) then
    return ("OMPI_COMM_WORLD_SIZE=%s, OMPI_COMM_WORLD_RANK=%s"):format(
      self:variable "OMPI_COMM_WORLD_SIZE", self:variable "OMPI_COMM_WORLD_RANK" or "")
  elseif is_other(self) then
    return ("PMI_SIZE=%s, PMI_RANK=%s (not Open MPI's)"):format(self:variable "PMI_SIZE",
      self:variable "PMI_RANK")
  end
end

function MPI:world_size() return self:integer("OMPI_COMM_WORLD_SIZE", "PMI_SIZE") or 1 end
function MPI:global_rank() return self:integer("OMPI_COMM_WORLD_RANK", "PMI_RANK") or 0 end

function MPI:local_rank()
  return self:integer("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID") or 0
end

--- Unknown from mpirun's variables, but known once the ranks are connected.
function MPI:node_rank()
  return self:integer "OMPI_COMM_WORLD_LOCAL_SIZE" == self:world_size() and 0 or nil
end

function MPI:num_nodes()
  return self:integer "OMPI_COMM_WORLD_LOCAL_SIZE" == self:world_size() and 1 or nil
end

function MPI:main_address()
  return self:variable "MASTER_ADDR" or self:num_nodes() == 1 and "127.0.0.1" or nil
end

-- Where mpirun itself listens: "1234.0;tcp://10.0.0.1,10.1.0.1:4321;tcp6://[fd00::2]:4321".
function MPI:network()
  local list = {}
  for address in (self:variable "OMPI_MCA_orte_hnp_uri" or ""):gmatch "tcp6?://%[?([%x.:,]+)" do
    list[#list + 1] = address:match "^([%d.,]+):%d+$" or address
  end
  return #list > 0 and table.concat(list, ",") or nil
end

function MPI:refusal()
  if is_open(self) then return nil end
  local size = self:world_size()
  if size == 1 then return nil end
  return ("%d ranks were started by an mpirun that is not Open MPI's (PMI_SIZE=%d, no "
    .. "OMPI_COMM_WORLD_SIZE): use Open MPI's mpirun -n %d"):format(size, size, size)
end

return MPI
