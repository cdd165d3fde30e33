--- stdlib/strategies/model_parallel/mesh_sharding.lua: sharding along a mesh: what the ranks that
--- have the same parts of a module divide among them (sharded/Sharding.lua).
local Offload = require "ltrain.strategies.sharded.Offload"
local Replicas = require "ltrain.strategies.sharded.Replicas"
local Sharding = require "ltrain.strategies.sharded.Sharding"
local buckets = require "ltrain.dist.buckets"
local data_ranks = require "ltrain.dist.data_ranks"
local errors = require "ltrain.core.errors"
local sharding_options = require "ltrain.strategies.sharded.options"

local mesh_sharding = {}

--- Refuses what does not fit a mesh of these sizes, by dim. `strategy` has its options; `who`: its
--- name, in errors.
function mesh_sharding.check(strategy, who, sizes)
  local replicas, offload = strategy.replicas or 1, strategy.offload
  if strategy.stage == 0 then
    local given = replicas ~= 1 and "replicas" or offload and "offload"
    if given then
      errors.blame("%s: %s is of what a stage divides: write stage = 1, 2 or 3", who, given)
    end
    return
  end
  local same = sizes.data_parallel * (sizes.context_parallel or 1)
  local all = same * (sizes.expert_parallel or 1)
  if offload and all == 1 then sharding_options.note_alone(strategy) end
  sharding_options.check_replicas(who, replicas, all, " with the same parts")
  sharding_options.check_replicas(who, replicas, same, " with the same experts")
end

--- The sharding of a run of a strategy; nil: nothing is divided so. All ranks call it.
function mesh_sharding.new(strategy, who)
  local ranks = strategy.stage > 0 and data_ranks.group()
  if not ranks or ranks:world_size() == 1 then return nil end
  local experts = strategy.expert_parallel_size > 1 and strategy.same_parts or nil
  local o = sharding_options.take({ who = who, stage = strategy.stage,
    ranks = Replicas(strategy.replicas or 1, { who = who, group = ranks, experts = experts,
      sends = strategy.comm_hook == "bf16" and "bf16" or nil }),
    home = Offload(strategy.offload, who), cap = buckets.bytes(strategy.bucket_cap_mb) }, strategy)
  return Sharding(o)
end

return mesh_sharding
