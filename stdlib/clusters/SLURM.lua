--- stdlib/clusters/SLURM.lua: the tasks of a job step started by srun.
--
-- Only tasks of a job step count: salloc and sbatch set many of the same variables for a shell that
-- runs once. Open MPI connects the ranks, through PMIx.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local node_list = require "ltrain.clusters.node_list"

local SLURM = ClusterEnvironment:extend "SLURM"

SLURM.comm = "mpi"
SLURM.starts = "srun --mpi=pmix -n %d ltrain run"
--- On SIGUSR1: save at the end of the batch, `scontrol requeue`, and resume after the restart.
SLURM.auto_requeue = true

local INTERACTIVE_STEP <const> = 4294967290 -- of salloc's own shell
local SHELLS <const> = { bash = true, interactive = true, sh = true, zsh = true }

-- What is there when SLURM_PROCID is not that of a task to be joined.
local function other_use(self)
  local job = self:variable "SLURM_JOB_ID" or "?"
  local step = self:integer("SLURM_STEP_ID", "SLURM_STEPID")
  if not self:variable "SLURM_PROCID" then
    return self:variable "SLURM_JOB_ID" and ("a shell in the allocation of job %s"):format(job)
  elseif step == INTERACTIVE_STEP then
    return ("the interactive step of job %s"):format(job)
  elseif not step and self:variable "ENVIRONMENT" == "BATCH" then
    return ("the batch script of job %s, outside of srun"):format(job)
  elseif self:world_size() == 1
    and (self:variable "SLURM_PTY_PORT" or SHELLS[self:variable "SLURM_JOB_NAME"]) then
    return ("an interactive shell of job %s"):format(job)
  end
end

function SLURM:detect()
  local other = other_use(self)
  if other or not self:variable "SLURM_PROCID" then return nil, other end
  return ("SLURM_PROCID=%s of %d tasks, job %s"):format(self:variable "SLURM_PROCID",
    self:world_size(), self:variable "SLURM_JOB_ID" or "?")
end

function SLURM:world_size()
  return self:integer("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS") or 1
end

function SLURM:global_rank() return self:integer "SLURM_PROCID" or 0 end
function SLURM:local_rank() return self:integer "SLURM_LOCALID" or 0 end
function SLURM:node_rank() return self:integer "SLURM_NODEID" or 0 end

function SLURM:num_nodes()
  return self:integer("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
end

function SLURM:main_address()
  local nodes = self:variable "SLURM_STEP_NODELIST" or self:variable "SLURM_JOB_NODELIST"
    or self:variable "SLURM_NODELIST"
  return self:variable "MASTER_ADDR" or nodes and (node_list.first(nodes)) or "127.0.0.1"
end

--- A port derived from the job id, so that two jobs on a machine use different ports.
function SLURM:main_port()
  local job = self:integer "SLURM_JOB_ID"
  return self:integer "MASTER_PORT" or job and 15000 + job % 10000
end

--- The address of the machine of srun.
function SLURM:network() return self:variable "SLURM_LAUNCH_NODE_IPADDR" end

local function has_pmix(self)
  return self:variable "PMIX_RANK" ~= nil or self:variable "PMIX_NAMESPACE" ~= nil
end

function SLURM:refusal()
  local size = self:world_size()
  if size == 1 or has_pmix(self) then return nil end
  return ("SLURM started %d tasks, but without PMIx each of them is a world of 1: start them with "
    .. "srun --mpi=pmix (srun --mpi=list shows what there is)"):format(size)
end

--- A single task forks its ranks, as without a launcher.
function SLURM:validate(devices, num_nodes)
  if self:world_size() == 1 and (num_nodes or 1) == 1 then return nil end
  return SLURM.super.validate(self, devices, num_nodes)
end

return SLURM
