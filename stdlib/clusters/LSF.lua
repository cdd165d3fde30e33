--- stdlib/clusters/LSF.lua: ranks started by jsrun in a job of LSF.
--
-- jsrun has its own PMIx, which Open MPI uses if it is available.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local c = require "ltrain.c"

local LSF = ClusterEnvironment:extend "LSF"

LSF.starts = "mpirun -n %d ltrain run"

function LSF:init(options)
  LSF.super.init(self, options)
  if self:variable "PMIX_RANK" or self:variable "PMIX_NAMESPACE" then self.comm = "mpi" end
end

function LSF:detect()
  local job = self:variable "LSB_JOBID"
  if not job then return nil end
  if not (self:variable "JSM_NAMESPACE_RANK" and self:variable "JSM_NAMESPACE_SIZE") then
    return nil, ("a shell in job %s of LSF, outside of jsrun"):format(job)
  end
  return ("JSM_NAMESPACE_SIZE=%s, JSM_NAMESPACE_RANK=%s, job %s"):format(
    self:variable "JSM_NAMESPACE_SIZE", self:variable "JSM_NAMESPACE_RANK", job)
end

function LSF:world_size() return self:integer "JSM_NAMESPACE_SIZE" or 1 end
function LSF:global_rank() return self:integer "JSM_NAMESPACE_RANK" or 0 end
function LSF:local_rank() return self:integer "JSM_NAMESPACE_LOCAL_RANK" or 0 end

-- Machines of the ranks, in order: one line each, that of the launching machine first.
local function hosts(self)
  local path = self:variable "LSB_DJOB_RANKFILE"
  local text = path and c.io.read_file(path)
  local list, seen = {}, {}
  for name in (text or ""):gmatch "%S+" do
    if not seen[name] then
      seen[name] = true
      list[#list + 1] = name
    end
  end
  return list
end

--- The first line of the rank file is the launching machine, which does not run a rank.
function LSF:main_address()
  local list = hosts(self)
  return self:variable "MASTER_ADDR" or list[2] or list[1] or "127.0.0.1"
end

function LSF:main_port()
  local job = self:integer "LSB_JOBID"
  return self:integer "MASTER_PORT" or job and 10000 + job % 1000
end

function LSF:num_nodes()
  local n = #hosts(self) - 1
  return n > 0 and n or nil
end

function LSF:node_rank()
  local here = c.runtime.hostname():match "^[^.]*"
  for i, name in ipairs(hosts(self)) do
    if name:match "^[^.]*" == here then return math.max(i - 2, 0) end
  end
  return nil
end

return LSF
