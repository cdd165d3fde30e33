--- stdlib/strategies/sharded/MeshRanks.lua: which ranks of a mesh share a parameter: those that
--- have the same part of it. For Shards, in the place of Replicas.
local class = require "ltrain.core.class"

local MeshRanks = class.extend(nil, "MeshRanks")

--- MeshRanks(group, sends, experts): `sends`: the dtype in which gradients travel (nil: their own);
--- `experts`: those of the group that have the same experts, where these are divided (nil: they are
--- not).
function MeshRanks:init(group, sends, experts)
  self.ranks, self.rank, self.is_first = group:world_size(), group:rank(), true
  self.inner, self.outer = group._handle, nil
  self.group, self.sends = group, sends
  self.of_experts = experts and MeshRanks(experts, sends) or nil
end

return MeshRanks
