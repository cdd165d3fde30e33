--- stdlib/strategies/sharded/Replicas.lua: groups of ranks of which each has all shards (PyTorch's
--- HYBRID_SHARD; MiCS: Zhang et al. 2022).
--
-- Parameters are gathered, and gradients reduced to shards, among the ranks of a replica, such as
-- those of a machine. The ranks that have the same shard, one in each replica, then add up its
-- gradient. Votes and the order of units are those of all ranks.
--
-- On a mesh all ranks are those that have the same part of a parameter: of experts that are divided
-- fewer than of the rest.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"

local d = c.dist

local Replicas = class.extend(nil, "Replicas")

-- The number of a rank's replica: consecutive ranks, or those of its machine.
local function number_of(count, ranks, rank)
  if count == "machines" then return d.world().node_rank end
  return rank // (ranks // count)
end

local function check_sizes(who, numbers)
  local sizes = {}
  for _, number in ipairs(numbers) do sizes[number] = (sizes[number] or 0) + 1 end
  for rank, number in ipairs(numbers) do
    if sizes[number] ~= sizes[numbers[1]] then
      errors.blame("%s: replicas = 'machines': machines must have equally many ranks: that of "
        .. "rank 0 has %d, that of rank %d %d", who, sizes[numbers[1]], rank - 1, sizes[number])
    end
  end
end

--- Replicas(count, {who = the strategy, in errors; sends =, group =, experts =}): `count`: a number
--- that divides that of the ranks, or "machines"; `sends`: the dtype in which gradients travel
--- (nil: their own); `group`: the ranks (nil: all); `experts`: those of them that have the same
--- experts, where these are divided. All ranks call it.
function Replicas:init(count, o)
  local handle = o.group and o.group._handle
  self.group, self.sends = o.group, o.sends
  self.ranks, self.rank = d.size(handle), d.rank(handle) -- of this replica
  self.is_first = true -- this rank's is replica 0, that of rank 0
  self.sharers = o.group -- the group of its ranks; nil: all ranks
  self.inner = handle -- and the runtime's
  self.outer = nil -- that of those that have the same shards; nil: this rank alone
  self.of_experts = o.experts and Replicas(count, { who = o.who, sends = o.sends,
    group = o.experts }) or nil
  if count == 1 or self.ranks == 1 then return end
  local own = number_of(count, self.ranks, self.rank)
  local numbers = collectives.all_gather(own, { group = o.group })
  check_sizes(o.who, numbers)
  self.is_first = own == numbers[1]
  self.sharers = collectives.split(own, { group = o.group, key = self.rank })
  self.inner = self.sharers._handle
  local place = d.rank(self.inner)
  if d.size(self.inner) < #numbers then self.outer = d.split(handle, place, self.rank) end
  self.ranks, self.rank = d.size(self.inner), place
end

return Replicas
