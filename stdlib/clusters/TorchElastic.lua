--- stdlib/clusters/TorchElastic.lua: ranks started by torchrun.
local Torch = require "ltrain.clusters.Torch"

local TorchElastic = Torch:extend "TorchElastic"

TorchElastic.starts = "torchrun --nproc_per_node %d --no-python ltrain run"

local PORTS <const> = 16 -- next to the agent's, of which rank 0 takes one that is free
local LAST_PORT <const> = 65535

function TorchElastic:detect()
  local id = self:variable "TORCHELASTIC_RUN_ID"
  return id and ("TORCHELASTIC_RUN_ID=%s, WORLD_SIZE=%s, RANK=%s"):format(id,
    self:variable "WORLD_SIZE" or "", self:variable "RANK" or "")
end

--- The agent of torchrun mostly listens on MASTER_PORT itself.
function TorchElastic:main_port()
  local port = self:integer "MASTER_PORT"
  if not port or self:variable "TORCHELASTIC_USE_AGENT_STORE" ~= "True" then return port end
  local first = port + PORTS <= LAST_PORT and port + 1 or port - PORTS
  return first, first + PORTS - 1
end

function TorchElastic:incarnation() return self:integer "TORCHELASTIC_RESTART_COUNT" or 0 end

function TorchElastic:reason()
  return self:incarnation() > 0 and "restarted by torchrun" or ""
end

--- The job's id and the number of the restart: ranks of an earlier start are refused.
function TorchElastic:token()
  return ("%s %s %s"):format(self:variable "LTRAIN_TOKEN" or "",
    self:variable "TORCHELASTIC_RUN_ID", self:variable "TORCHELASTIC_RESTART_COUNT" or "0")
end

return TorchElastic
