--- stdlib/strategies/DeepSpeedStrategy.lua: Sharded with the options of Lightning's
--- DeepSpeedStrategy, and what of a DeepSpeed config file has a meaning here.
local Sharded = require "ltrain.strategies.Sharded"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local noted_options = require "ltrain.strategies.noted_options"
local tree = require "ltrain.core.tree"

local DeepSpeedStrategy = Sharded:extend("DeepSpeedStrategy")

local refused, unneeded = noted_options.refused, noted_options.unneeded

local BUFFERS <const> = "buffers have the size of a unit"
local OFFLOAD <const> = "the state of a fit stays on its device"
local SCALER <const> = "write precision = '16-mixed' in the Trainer, and options of lt.GradScaler "
  .. "in a precision of your own"

local rows = {
  stage = { type = "integer", choices = { 1, 2, 3 },
    doc = "what is divided: 1: the state of optimizers; 2: and gradients; 3: and parameters; by "
      .. "default the config's, or 2" },
  config = { type = "string|table", doc = "a DeepSpeed config: a JSON file, or the table" },
  zero_optimization = { type = "boolean", default = true,
    check = function(value) return not value and "= false: write strategy = 'ddp'" or nil end,
    doc = "true: without it write strategy = 'ddp'" },
  offload_params_device = refused(OFFLOAD), offload_optimizer_device = refused(OFFLOAD),
  remote_device = refused(OFFLOAD), nvme_path = refused(OFFLOAD),
  initial_scale_power = refused(SCALER), loss_scale = refused(SCALER),
  loss_scale_window = refused(SCALER), hysteresis = refused(SCALER),
  min_loss_scale = refused(SCALER),
  parallel_devices = refused "write devices = N in the Trainer",
  precision_plugin = refused "write precision in the Trainer",
  partition_activations = refused "activation_checkpointing computes them again",
  cpu_checkpointing = refused(OFFLOAD),
  load_full_weights = unneeded("boolean", "checkpoints of one file and of a folder load alike"),
  exclude_frozen_parameters = refused "a checkpoint has all parameters",
  zero_allow_untested_optimizer = unneeded("boolean",
    "an optimizer that updates whole parameters is refused by name"),
  logging_batch_size_per_gpu = unneeded("integer", "nothing is logged by the strategy"),
}
for _, name in ipairs { "offload_optimizer", "offload_parameters" } do
  rows[name] = { type = "boolean", default = false, doc = "false: " .. OFFLOAD,
    check = function(value) return value and "= true: " .. OFFLOAD end }
end
for name, type in next, { params_buffer_count = "integer", params_buffer_size = "integer",
  max_in_cpu = "integer", optimizer_buffer_count = "integer", sub_group_size = "integer",
  contiguous_gradients = "boolean", allgather_bucket_size = "integer",
  reduce_bucket_size = "integer", contiguous_memory_optimization = "boolean",
  synchronize_checkpoint_boundary = "boolean" } do
  rows[name] = unneeded(type, BUFFERS)
end
for name, type in next, { overlap_comm = "boolean", allgather_partitions = "boolean",
  reduce_scatter = "boolean" } do
  rows[name] = unneeded(type, "gradients are always reduce-scattered as backward passes")
end
for name, type in next, { block_size = "integer", queue_depth = "integer",
  single_submit = "boolean", overlap_events = "boolean", thread_count = "integer",
  pin_memory = "boolean" } do
  rows[name] = unneeded(type, "there is no offload")
end

--- Its options.
DeepSpeedStrategy.options = Sharded.rows(rows)

-- What the Trainer decides, by the names of a config.
local TRAINERS <const> = {
  gradient_accumulation_steps = "accumulate_grad_batches of the Trainer",
  gradient_clipping = "gradient_clip_val of the Trainer",
  train_micro_batch_size_per_gpu = "the DataLoader's batch_size",
  train_batch_size = "the DataLoader's global_batch_size",
  fp16 = "precision = '16-mixed' of the Trainer", bf16 = "precision = 'bf16-mixed' of the Trainer",
  optimizer = "configure_optimizers", scheduler = "configure_optimizers",
}

-- Whether a part of a config asks for something: {"fp16": {"enabled": false}} does not.
local function asks(value)
  if type(value) == "table" and value.enabled ~= nil then return value.enabled end
  return value ~= "auto"
end

local function read(path)
  local text, message = c.io.read_file(path)
  if not text then errors.blame("strategies.DeepSpeedStrategy: config: %s", message) end
  local value, why = c.io.json_decode(text, { plain = true })
  if type(value) ~= "table" then
    errors.blame("strategies.DeepSpeedStrategy: config: %s: %s", path, why or "not a table")
  end
  return value
end

-- Stage and notes of a config.
local function of_config(value, notes)
  if type(value) == "string" then value = read(value) end
  for name, part in tree.pairs(value) do
    if TRAINERS[name] and asks(part) then
      notes[#notes + 1] = ("config: %s has no effect: it is %s"):format(name, TRAINERS[name])
    elseif not TRAINERS[name] and name ~= "zero_optimization" then
      notes[#notes + 1] = ("config: %s has no effect"):format(name)
    end
  end
  local zero = value.zero_optimization or {}
  for _, name in ipairs { "offload_optimizer", "offload_param" } do
    local device = (zero[name] or {}).device
    if device and device ~= "none" then
      errors.blame("strategies.DeepSpeedStrategy: config: %s to '%s': %s", name, device, OFFLOAD)
    end
  end
  if zero.stage == 0 then
    errors.blame("strategies.DeepSpeedStrategy: config: stage 0 divides nothing: write strategy = "
      .. "'ddp'")
  end
  local stage = config.argument(zero.stage or 2, "integer", "strategies.DeepSpeedStrategy",
    "stage of the config", { min = 1, max = 3 })
  return stage, zero.stage3_param_persistence_threshold
end

--- DeepSpeedStrategy{stage = 2, config = "ds.json", ...}
function DeepSpeedStrategy:init(options)
  local o, notes = noted_options.check(options, DeepSpeedStrategy.options,
    "strategies.DeepSpeedStrategy")
  if o.config then
    local stage, least = of_config(o.config, notes)
    o.stage = o.stage or stage
    local has_own = (options or {}).keep_below ~= nil
    if math.type(least) == "integer" and not has_own then o.keep_below = least end
  end
  o.stage = o.stage or 2
  self:take_options(o, notes)
end

return DeepSpeedStrategy
