--- stdlib/strategies/sharded/Offload.lua: where the ranks keep what is divided among them: on the
--- device that computes, or on the host (ZeRO-Offload: Ren et al. 2021).
--
-- On the host are the shards that optimizers step, their gradients and the state: so the update is
-- computed there. A whole parameter is on the device while it is computed with.
local class = require "ltrain.core.class"

local Offload = class.extend(nil, "Offload")

--- Offload(device): "cpu"; nil: on the device that computes.
function Offload:init(device) self.device = device end

--- Whether shards of a tensor are on another device than itself.
function Offload:moves(tensor)
  return self.device ~= nil and tensor.device ~= self.device and not tensor.is_meta
end

--- A copy of a tensor, where shards are.
function Offload:copy(tensor)
  return self:moves(tensor) and tensor:to(self.device) or tensor:clone()
end

--- A tensor that nothing else uses, where shards are.
function Offload:take(tensor)
  if not self:moves(tensor) then return tensor end
  local own <close> = tensor -- luacheck: ignore
  return own:to(self.device)
end

return Offload
