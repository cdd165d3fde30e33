--- stdlib/strategies/FSDPStrategy.lua: Sharded with the options of Lightning's FSDPStrategy.
local Sharded = require "ltrain.strategies.Sharded"
local errors = require "ltrain.core.errors"
local noted_options = require "ltrain.strategies.noted_options"

local FSDPStrategy = Sharded:extend("FSDPStrategy")

local refused, unneeded = noted_options.refused, noted_options.unneeded

-- What each name of PyTorch's divides.
local STRATEGIES <const> = {
  FULL_SHARD = { reshard_after_forward = true },
  SHARD_GRAD_OP = { reshard_after_forward = false },
}
local ABSENT <const> = {
  NO_SHARD = "write strategy = 'ddp'",
  HYBRID_SHARD = "parameters are divided among all ranks: write 'FULL_SHARD'",
  _HYBRID_SHARD_ZERO2 = "parameters are divided among all ranks: write 'SHARD_GRAD_OP'",
}

local function check_strategy(value)
  if STRATEGIES[value] then return nil end
  return ("= '%s': %s"):format(value, ABSENT[value] or "must be 'FULL_SHARD' or 'SHARD_GRAD_OP'")
end

local PRECISION <const> = "write precision = 'bf16-mixed' or 'bf16-true' in the Trainer"

--- Its options.
FSDPStrategy.options = Sharded.rows {
  sharding_strategy = { type = "string", default = "FULL_SHARD", check = check_strategy,
    doc = "'FULL_SHARD', or 'SHARD_GRAD_OP', which keeps parameters between forward and backward" },
  auto_wrap_policy = { type = "function|integer|table",
    doc = "which modules are gathered by themselves: `units`" },
  activation_checkpointing_policy = { type = "function|table",
    doc = "another name for activation_checkpointing" },
  cpu_offload = { type = "boolean", default = false,
    check = function(value) return value and "= true: the state of a fit stays on its device" end,
    doc = "false: the state of a fit stays on its device" },
  mixed_precision = refused(PRECISION), precision_plugin = refused(PRECISION),
  parallel_devices = refused "write devices = N in the Trainer",
  device_mesh = refused "parameters are divided among all ranks",
  process_group = refused "parameters are divided among all ranks",
  ignored_modules = refused "keep_below leaves small parameters whole",
  ignored_states = refused "keep_below leaves small parameters whole",
  limit_all_gathers = unneeded("boolean", "one unit is gathered at a time"),
  forward_prefetch = unneeded("boolean", "one unit is gathered at a time"),
  backward_prefetch = unneeded("string", "one unit is gathered at a time"),
  use_orig_params = unneeded("boolean", "parameters are always tensors of their own"),
  sync_module_states = unneeded("boolean", "all ranks begin with rank 0's parameters"),
}

-- One option by two names.
local function merge(o, name, other)
  if o[other] == nil then return end
  if o[name] ~= nil then
    errors.blame("strategies.FSDPStrategy: %s and %s are one option: give one", name, other)
  end
  o[name], o[other] = o[other], nil
end

--- FSDPStrategy{sharding_strategy = "FULL_SHARD", auto_wrap_policy = {Block}, ...}
function FSDPStrategy:init(options)
  local o, notes = noted_options.check(options, FSDPStrategy.options, "strategies.FSDPStrategy")
  local given = options or {}
  if given.reshard_after_forward == nil then
    o.reshard_after_forward = STRATEGIES[o.sharding_strategy].reshard_after_forward
  end
  if given.units == nil and o.auto_wrap_policy then o.units = nil end
  merge(o, "units", "auto_wrap_policy")
  merge(o, "activation_checkpointing", "activation_checkpointing_policy")
  self:take_options(o, notes)
end

return FSDPStrategy
