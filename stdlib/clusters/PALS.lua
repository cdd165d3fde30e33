--- stdlib/clusters/PALS.lua: ranks started by mpiexec of HPE Cray's PALS. No built-in comm backend
--- connects them.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"

local PALS = ClusterEnvironment:extend "PALS"

function PALS:init(options)
  PALS.super.init(self, options)
  self.size_is_known = self:integer("PALS_SIZE", "PMI_SIZE") ~= nil
end

function PALS:detect()
  local rank = self:variable "PALS_RANKID"
  if not rank then return nil end
  if self:world_size() == 1 then return nil, "a single rank of PALS" end
  return ("PALS_RANKID=%s"):format(rank)
end

--- A lower bound if it is unknown: one of several.
function PALS:world_size()
  return self:integer("PALS_SIZE", "PMI_SIZE") or math.max(self:global_rank() + 1, 2)
end

function PALS:global_rank() return self:integer "PALS_RANKID" or 0 end
function PALS:local_rank() return self:integer "PALS_LOCAL_RANKID" or 0 end
function PALS:node_rank() return self:integer "PALS_NODEID" end

return PALS
