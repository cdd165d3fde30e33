--- stdlib/strategies/FSDPStrategy.lua: Sharded with the options of Lightning's FSDPStrategy.
local Sharded = require "ltrain.strategies.Sharded"
local errors = require "ltrain.core.errors"
local foreign_options = require "ltrain.strategies.foreign_options"
local tree = require "ltrain.core.tree"

local FSDPStrategy = Sharded:extend("FSDPStrategy")

local WHO <const> = "strategies.FSDPStrategy"

local refused, unneeded = foreign_options.refused, foreign_options.unneeded

-- What each name of PyTorch's divides.
local STRATEGIES <const> = {
  FULL_SHARD = { reshard_after_forward = true },
  SHARD_GRAD_OP = { reshard_after_forward = false },
  HYBRID_SHARD = { reshard_after_forward = true, replicas = "machines" },
  _HYBRID_SHARD_ZERO2 = { reshard_after_forward = false, replicas = "machines" },
}

-- Options by other names.
local OTHER_NAMES <const> = { cpu_offload = "offload", auto_wrap_policy = "units",
  activation_checkpointing_policy = "activation_checkpointing" }

local function check_strategy(value)
  if STRATEGIES[value] then return nil end
  return ("= '%s': %s"):format(value, value == "NO_SHARD" and "write strategy = 'ddp'"
    or "must be 'FULL_SHARD', 'SHARD_GRAD_OP', 'HYBRID_SHARD' or '_HYBRID_SHARD_ZERO2'")
end

local function check_mesh(value)
  if #value == 2 and math.type(value[1]) == "integer" and math.type(value[2]) == "integer"
    and value[1] > 0 and value[2] > 0 then
    return nil
  end
  return "must be {replicas, ranks of each}, two numbers"
end

local PRECISION <const> = "write precision = 'bf16-mixed' or 'bf16-true' in the Trainer"

--- Its options.
FSDPStrategy.options = Sharded.rows {
  sharding_strategy = { type = "string", default = "FULL_SHARD", check = check_strategy,
    doc = "'FULL_SHARD'; 'SHARD_GRAD_OP', which keeps parameters between forward and backward; "
      .. "'HYBRID_SHARD' and '_HYBRID_SHARD_ZERO2': the same within each machine, or as "
      .. "device_mesh says" },
  device_mesh = { type = "table", check = check_mesh,
    doc = "with 'HYBRID_SHARD': {replicas, ranks of each}" },
  auto_wrap_policy = { type = "function|integer|table",
    doc = "which modules are gathered by themselves: `units`" },
  activation_checkpointing_policy = { type = "function|table",
    doc = "another name for activation_checkpointing" },
  cpu_offload = { type = "boolean",
    doc = "true: parameters, gradients and the state of optimizers on the host: offload = 'cpu'" },
  mixed_precision = refused(PRECISION), precision_plugin = refused(PRECISION),
  parallel_devices = refused "write devices = N in the Trainer",
  process_group = refused "groups of ranks are made from device_mesh = {replicas, ranks of each}",
  ignored_modules = refused "keep_below leaves small parameters whole",
  ignored_states = refused "keep_below leaves small parameters whole",
  limit_all_gathers = unneeded("boolean", "one unit is gathered at a time"),
  forward_prefetch = unneeded("boolean", "one unit is gathered at a time"),
  backward_prefetch = unneeded("string", "one unit is gathered at a time"),
  use_orig_params = unneeded("boolean", "parameters are always tensors of their own"),
  sync_module_states = unneeded("boolean", "all ranks begin with rank 0's parameters"),
}

-- Takes what sharding_strategy and device_mesh say of replicas.
local function take_replicas(self, o)
  local named, mesh = STRATEGIES[o.sharding_strategy].replicas, o.device_mesh
  if mesh and not named then
    errors.blame("strategies.FSDPStrategy: device_mesh needs sharding_strategy = 'HYBRID_SHARD': "
      .. "got '%s'", o.sharding_strategy)
  end
  self.mesh, o.device_mesh = mesh, nil
  if mesh then
    o.replicas = mesh[1]
  elseif named and o.replicas == 1 then
    o.replicas = named
  end
end

--- FSDPStrategy{sharding_strategy = "FULL_SHARD", auto_wrap_policy = {Block}, ...}
function FSDPStrategy:init(options)
  local o, notes = foreign_options.check(options, FSDPStrategy.options, WHO)
  local given = options or {}
  if given.reshard_after_forward == nil then
    o.reshard_after_forward = STRATEGIES[o.sharding_strategy].reshard_after_forward
  end
  take_replicas(self, o)
  o.cpu_offload = o.cpu_offload and "cpu" or nil
  if given.units == nil and o.auto_wrap_policy then o.units = nil end
  for other, name in tree.pairs(OTHER_NAMES) do foreign_options.merge(WHO, o, name, other) end
  self:take_options(o, notes)
end

--- Refuses a device_mesh of another number of ranks.
function FSDPStrategy:configure(ranks, o)
  local mesh = self.mesh
  if mesh and ranks > 1 and mesh[1] * mesh[2] ~= ranks then
    errors.blame("strategies.FSDPStrategy: device_mesh = {%d, %d} is of %d ranks: got %d", mesh[1],
      mesh[2], mesh[1] * mesh[2], ranks)
  end
  Sharded.configure(self, ranks, o)
end

return FSDPStrategy
