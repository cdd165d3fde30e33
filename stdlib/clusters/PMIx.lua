--- stdlib/clusters/PMIx.lua: ranks of another launcher with PMIx (`prun`).
--
-- Its variables do not contain the number of ranks, which communication backends need.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local PMIx = ClusterEnvironment:extend "PMIx"

PMIx.size_is_known = false

-- Their shells have the variable too, and are not launch.
local MANAGERS <const> = { "SLURM_JOB_ID", "LSB_JOBID", "FLUX_TASK_RANK" }

function PMIx:detect()
  local rank = self:variable "PMIX_RANK"
  for _, name in ipairs(MANAGERS) do
    if self:variable(name) then return nil end
  end
  return rank and ("PMIX_RANK=%s"):format(rank)
end

--- A lower bound: one of several.
function PMIx:world_size() return math.max(self:global_rank() + 1, 2) end
function PMIx:global_rank() return self:integer "PMIX_RANK" or 0 end
function PMIx:node_rank() return nil end

return PMIx
