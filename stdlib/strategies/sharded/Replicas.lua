--- stdlib/strategies/sharded/Replicas.lua: groups of ranks of which each has all shards (PyTorch's
--- HYBRID_SHARD; MiCS: Zhang et al. 2022).
--
-- Parameters are gathered, and gradients reduced to shards, among the ranks of a replica, such as
-- those of a machine. The ranks that have the same shard, one in each replica, then add up its
-- gradient. Votes and the order of units are those of all ranks.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"

local d = c.dist

local Replicas = class.extend(nil, "Replicas")

-- The number of this rank's replica: consecutive ranks, or those of its machine.
local function own_number(count)
  if count == "machines" then return d.world().node_rank end
  return d.rank() // (d.size() // count)
end

local function check_sizes(numbers)
  local sizes = {}
  for _, number in ipairs(numbers) do sizes[number] = (sizes[number] or 0) + 1 end
  for rank, number in ipairs(numbers) do
    if sizes[number] ~= sizes[numbers[1]] then
      errors.blame("strategies.Sharded: replicas = 'machines': machines must have equally many "
        .. "ranks: that of rank 0 has %d, that of rank %d %d", sizes[numbers[1]], rank - 1,
        sizes[number])
    end
  end
end

--- Replicas(count, sends): `count`: a number that divides that of the ranks, or "machines";
--- `sends`: the dtype in which gradients travel (nil: their own). All ranks call it.
function Replicas:init(count, sends)
  self.sends = sends
  self.ranks, self.rank = d.size(), d.rank() -- of this replica
  self.is_first = true -- this rank's is replica 0, that of rank 0
  self.inner = nil -- the group of its ranks; nil: all ranks
  self.outer = nil -- and of those that have the same shards; nil: this rank alone
  if count == 1 or self.ranks == 1 then return end
  local own = own_number(count)
  local numbers = collectives.all_gather(own)
  check_sizes(numbers)
  self.is_first = own == numbers[1]
  self.inner = d.split(nil, own, self.rank)
  self.ranks, self.rank = d.size(self.inner), d.rank(self.inner)
  if self.ranks < #numbers then self.outer = d.split(nil, self.rank, d.rank()) end
end

return Replicas
