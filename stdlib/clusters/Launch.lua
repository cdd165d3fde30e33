--- stdlib/clusters/Launch.lua: ranks started by `ltrain launch`, which starts them again when one
--- fails or hosts come and go.
local Torch = require "ltrain.clusters.Torch"
local restarts = require "ltrain.core.restarts"

local Launch = Torch:extend "Launch"

Launch.starts = "ltrain launch --nproc_per_node %d"
Launch.stop_status = restarts.STOPPED

local PORTS <const> = 16 -- of which rank 0 takes one that is free

function Launch:detect()
  local job = self:variable "LTRAIN_LAUNCH"
  return job and ("LTRAIN_LAUNCH=%s, WORLD_SIZE=%s, RANK=%s"):format(job,
    self:variable "WORLD_SIZE" or "", self:variable "RANK" or "")
end

function Launch:num_nodes() return self:integer "GROUP_WORLD_SIZE" end

function Launch:main_port()
  local first = self:integer "MASTER_PORT"
  return first, first and first + PORTS - 1
end

--- Returns the name of the job.
function Launch:job() return self:variable "LTRAIN_LAUNCH" end
function Launch:incarnation() return self:integer "LTRAIN_INCARNATION" or 0 end
function Launch:reason() return self:variable "LTRAIN_REASON" or "" end

return Launch
