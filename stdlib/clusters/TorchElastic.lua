--- stdlib/clusters/TorchElastic.lua: ranks started by torchrun. No built-in comm backend connects
--- them.
local Torch = require "ltrain.clusters.Torch"

local TorchElastic = Torch:extend "TorchElastic"

function TorchElastic:detect()
  local id = self:variable "TORCHELASTIC_RUN_ID"
  return id and ("TORCHELASTIC_RUN_ID=%s, WORLD_SIZE=%s, RANK=%s"):format(id,
    self:variable "WORLD_SIZE" or "", self:variable "RANK" or "")
end

return TorchElastic
