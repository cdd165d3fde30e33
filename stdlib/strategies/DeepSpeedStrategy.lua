--- stdlib/strategies/DeepSpeedStrategy.lua: Sharded with the options of Lightning's
--- DeepSpeedStrategy, and what of a DeepSpeed config file has a meaning here.
local Sharded = require "ltrain.strategies.Sharded"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local foreign_options = require "ltrain.strategies.foreign_options"
local tree = require "ltrain.core.tree"

local DeepSpeedStrategy = Sharded:extend("DeepSpeedStrategy")

local refused, unneeded = foreign_options.refused, foreign_options.unneeded

local FILES <const> = "files are mapped, and the system reads ahead and writes them"
local BUFFERS <const> = "buffers have the size of a unit"
local CHECKPOINTING <const> = "activation_checkpointing computes activations again"
local DEVICES <const> = { "cpu", "nvme", "none" }
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
  offload_optimizer = { type = "boolean", default = false,
    doc = "the state of optimizers, gradients and the update on the host; under stage 3 with the "
      .. "parameters, which are stepped there" },
  offload_parameters = { type = "boolean", default = false,
    doc = "stage 3: parameters on the host too" },
  offload_optimizer_device = { type = "string", choices = DEVICES, default = "cpu",
    doc = "'nvme': in files below nvme_path" },
  offload_params_device = { type = "string", choices = DEVICES, default = "cpu",
    doc = "'nvme': in files below nvme_path" },
  nvme_path = { type = "string", default = "/local_nvme", doc = "a folder on a fast disk" },
  remote_device = { type = "string", choices = DEVICES,
    doc = "where parameters are made: 'nvme' is as in offload_params_device; else build them in "
      .. "configure_model on the meta device" },
  initial_scale_power = refused(SCALER), loss_scale = refused(SCALER),
  loss_scale_window = refused(SCALER), hysteresis = refused(SCALER),
  min_loss_scale = refused(SCALER),
  parallel_devices = refused "write devices = N in the Trainer",
  precision_plugin = refused "write precision in the Trainer",
  partition_activations = refused(CHECKPOINTING),
  cpu_checkpointing = { type = "boolean", doc = "another name for offload_activations" },
  load_full_weights = unneeded("boolean", "checkpoints of one file and of a folder load alike"),
  exclude_frozen_parameters = refused "a checkpoint has all parameters",
  zero_allow_untested_optimizer = unneeded("boolean",
    "an optimizer that updates whole parameters is refused by name"),
  logging_batch_size_per_gpu = unneeded("integer", "nothing is logged by the strategy"),
}
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
  rows[name] = unneeded(type, FILES)
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

-- Parts of a config's zero_optimization, and what they say by the options' names.
local OF_CONFIG <const> = {
  offload_optimizer = { is = "offload_optimizer", device = "offload_optimizer_device" },
  offload_param = { is = "offload_parameters", device = "offload_params_device" },
}

-- Takes where a config offloads to, unless the options say it.
local function take_config_offload(zero, o, given, notes)
  for name, row in tree.pairs(OF_CONFIG) do
    local part = zero[name] or {}
    for key in tree.pairs(part) do
      if key ~= "device" and key ~= "nvme_path" then
        notes[#notes + 1] = ("config: %s.%s has no effect: %s"):format(name, key, FILES)
      end
    end
    local device = part.device and config.value(part.device, { type = "string", choices = DEVICES },
      "strategies.DeepSpeedStrategy", ("device of %s of the config"):format(name))
    if device and device ~= "none" and given[row.is] == nil then
      o[row.is], o[row.device] = true, device
      if part.nvme_path and given.nvme_path == nil then o.nvme_path = part.nvme_path end
    end
  end
end

-- Takes what a config says; `given`: the options of the script, which come first.
local function take_config(value, o, given, notes)
  if type(value) == "string" then value = read(value) end
  for name, part in tree.pairs(value) do
    if TRAINERS[name] and asks(part) then
      notes[#notes + 1] = ("config: %s has no effect: it is %s"):format(name, TRAINERS[name])
    elseif not TRAINERS[name] and name ~= "zero_optimization" then
      notes[#notes + 1] = ("config: %s has no effect"):format(name)
    end
  end
  local zero = value.zero_optimization or {}
  if zero.stage == 0 then
    errors.blame("strategies.DeepSpeedStrategy: config: stage 0 divides nothing: write strategy = "
      .. "'ddp'")
  end
  o.stage = o.stage or config.argument(zero.stage or 2, "integer",
    "strategies.DeepSpeedStrategy", "stage of the config", { min = 1, max = 3 })
  local least = zero.stage3_param_persistence_threshold
  if math.type(least) == "integer" and given.keep_below == nil then o.keep_below = least end
  take_config_offload(zero, o, given, notes)
end

-- Takes the options of offloading for `offload`: one place for all that is divided.
local function take_offload(o, notes)
  local wanted = {}
  if o.remote_device == "nvme" then o.offload_parameters, o.offload_params_device = true, "nvme" end
  for _, row in tree.pairs(OF_CONFIG) do
    local device = o[row.device]
    if o[row.is] and device ~= "none" then wanted[row.is] = device end
    o[row.is], o[row.device] = nil, nil
  end
  local path = o.nvme_path
  o.nvme_path, o.remote_device = nil, nil
  if wanted.offload_parameters and o.stage < 3 then
    notes[#notes + 1] = ("offload_parameters has no effect: under stage %d parameters are whole")
      :format(o.stage)
    wanted.offload_parameters = nil
  end
  local one = next(wanted)
  if one == nil then return end
  if o.stage == 3 and wanted.offload_parameters ~= wanted.offload_optimizer then
    notes[#notes + 1] = "offload: under stage 3 parameters, gradients and the state of optimizers "
      .. "are in one place"
  end
  local in_files = wanted.offload_parameters == "nvme" or wanted.offload_optimizer == "nvme"
  o[one] = in_files and { path = path } or "cpu"
  foreign_options.merge("strategies.DeepSpeedStrategy", o, "offload", one)
end

--- DeepSpeedStrategy{stage = 2, config = "ds.json", ...}
function DeepSpeedStrategy:init(options)
  local o, notes = foreign_options.check(options, DeepSpeedStrategy.options,
    "strategies.DeepSpeedStrategy")
  local given = options or {}
  if o.config then take_config(o.config, o, given, notes) end
  o.stage = o.stage or 2
  take_offload(o, notes)
  o.offload_activations, o.cpu_checkpointing = o.offload_activations or o.cpu_checkpointing, nil
  self:take_options(o, notes)
end

return DeepSpeedStrategy
