--- stdlib/trainer/setup/options.lua: the table of the Trainer's options.
--
-- The check of what scripts pass, the flags of the command line and the page of options come from
-- these rows. `set`: what `trainer.NAME = value` does later: "field": the loops read the Trainer's
-- field, "option": they read trainer.options; without it that is an error.
local config = require "ltrain.core.config"
local duration = require "ltrain.core.duration"
local errors = require "ltrain.core.errors"
local logger_words = require "ltrain.loggers.logger_names"

-- A limit: an integer counts batches, a float is a share.
local function check_limit(value)
  if value < 0 then return ("must not be negative: got %s"):format(value) end
  if value ~= value or math.type(value) == "float" and value > 1 then
    return "must be an integer (batches) or a fraction from 0.0 to 1.0: got " .. errors.show(value)
  end
end

local function limit(doc)
  return { type = "number", default = 1.0, set = "field", check = check_limit, doc = doc }
end

local function flag(default, doc, set)
  return { type = "boolean", default = default, set = set, doc = doc }
end

local function check_interval(value)
  if type(value) ~= "number" then
    local seconds, wrong = duration.seconds(value)
    return wrong or seconds == 0 and "must be above 0 seconds: got 0" or nil
  end
  if value ~= value or value <= 0 then return "must be positive: got " .. errors.show(value) end
  if math.type(value) == "float" and value > 1 then
    return ("must be an integer (batches) or a fraction up to 1.0: got %s"):format(value)
  end
end

-- Seconds; false: no snapshots.
local function to_interval(value)
  if value == true then return nil, "must be a time, or false for no snapshots: got true" end
  if not value then return false end
  return duration.seconds(value)
end

local function check_every(value)
  if value == true then return "must be an integer, or false to count batches only: got true" end
  if value and value < 1 then return ("must be at least 1: got %s"):format(value) end
end

local function check_deterministic(value)
  if type(value) == "string" and value ~= "warn" and value ~= "world" then
    return ("must be true, false, 'warn' or 'world': got '%s'"):format(value)
  end
end

local ELASTIC <const> = {
  batch = { type = "string", default = "global", choices = { "global", "per_rank" } },
  lr = { type = "string", default = "keep", choices = { "keep", "linear", "sqrt" } },
}

local function elastic_rules(value)
  local rules = config.check(value, ELASTIC, "Trainer: elastic")
  if rules.batch == "global" and rules.lr ~= "keep" then
    return nil, ("has lr = '%s' with batch = 'global', where the global batch, and so the learning "
      .. "rate, stays: write batch = 'per_rank', or leave out lr"):format(rules.lr)
  end
  return rules
end

return {
  accelerator = { type = "string|object|table", default = "auto",
    doc = "device that ranks compute on: 'auto' (a GPU if there is one), 'cpu', 'gpu', the name "
      .. "of another device, or a custom accelerator" },
  strategy = { type = "string|object|table", default = "auto",
    doc = "how ranks work together: 'auto', 'ddp', 'fsdp', 'local_sgd', 'single_device', "
      .. "another registered name, a table of a name and options, or an object" },
  devices = { type = "integer|string|table", default = "auto",
    doc = "number of ranks (processes) on this machine; for GPUs also a list such as {0, 2} or "
      .. "'0, 2', or -1 for all; 'auto': one on the CPU, all GPUs" },
  num_nodes = { type = "integer", default = 1, min = 1, doc = "number of machines" },
  precision = { type = "integer|string",
    doc = "dtypes: '32-true' (32, the default); 'bf16-mixed' ('bf16') and '16-mixed' (16): matrix "
      .. "products and convolutions in bf16 or f16, weights in f32; 'bf16-true', '16-true' and "
      .. "'64-true' (64): weights and batches in this dtype; 'fp8-mixed': as 'bf16-mixed', with "
      .. "nn.Linear in float8; 'transformer-engine', 'transformer-engine-float16': the same with "
      .. "weights in bf16 or f16" },
  matmul_precision = { type = "string", set = "option", choices = { "highest", "high", "medium" },
    doc = "products of f32 on GPUs: in f32, in TF32 ('high'), which is faster and rounds factors "
      .. "to 11 bits, or in bf16 ('medium'), to 8 bits; default: as set by "
      .. "lt.set_float32_matmul_precision" },
  logger = { type = "boolean|string|object|table", default = true, check = logger_words.check,
    doc = "'csv' (true is the same), 'jsonlines', 'tensorboard', 'wandb', 'mlflow', 'none' "
      .. "(false); a logger or a list" },
  callbacks = { type = "table|object", set = "field", default = {}, doc = "a callback or a list" },
  fast_dev_run = { type = "boolean|integer", default = false, min = 0,
    doc = "run n (true: 1) batches of each loop, save and log nothing; 0: off" },
  max_epochs = { type = "integer", set = "field", min = -1, doc = "epochs to train; -1: no limit" },
  min_epochs = { type = "integer", set = "option", min = 0, doc = "should_stop is ignored before" },
  max_steps = { type = "integer", set = "field", default = -1, min = -1,
    doc = "optimizer steps; -1: no limit" },
  min_steps = { type = "integer", set = "option", min = 0, doc = "should_stop is ignored before" },
  max_time = duration.option("seconds, 'DD:HH:MM:SS' or {weeks =, days =, hours =, minutes =, "
    .. "seconds =}"),
  limit_train_batches = limit "training batches per epoch: a number or a fraction",
  limit_val_batches = limit "validation batches per loader: a number or a fraction",
  limit_test_batches = limit "test batches per loader: a number or a fraction",
  limit_predict_batches = limit "prediction batches per loader: a number or a fraction",
  overfit_batches = { type = "number", set = "option", default = 0, check = check_limit,
    doc = "train and validate on the same few batches, unshuffled" },
  val_check_interval = { type = "number|string|table", default = 1.0, check = check_interval,
    set = "field",
    doc = "validate after this fraction of an epoch, every n batches, or, at the end of a batch, "
      .. "after this time: 'DD:HH:MM:SS' or {hours =, minutes =, seconds =}" },
  check_val_every_n_epoch = { type = "integer|boolean", default = 1, check = check_every,
    set = "field",
    doc = "epochs between validations; false: val_check_interval counts across epochs" },
  num_sanity_val_steps = { type = "integer", set = "field", default = 2, min = -1,
    doc = "validation batches run before training; -1: all" },
  log_every_n_steps = { type = "integer", set = "field", default = 50, min = 0,
    doc = "steps between rows of logged step values; 0: none" },
  enable_checkpointing = flag(true, "save a checkpoint per epoch if no callback does"),
  enable_progress_bar = flag(true, "show a progress bar"),
  enable_model_summary = flag(true, "print the layers before training"),
  accumulate_grad_batches = { type = "integer", set = "field", default = 1, min = 1,
    doc = "batches per optimizer step" },
  gradient_clip_val = { type = "number", set = "option", min = 0,
    doc = "largest norm or value of gradients; nil or 0: no clipping" },
  gradient_clip_algorithm = { type = "string", default = "norm", choices = { "norm", "value" },
    set = "option", doc = "clip the total norm, or each element" },
  deterministic = { type = "boolean|string", default = false, check = check_deterministic,
    doc = "true or 'warn': repeated runs are bitwise equal (on the CPU they always are with the "
      .. "same number of threads; mpi then sums in a fixed order); 'world': also on other "
      .. "numbers of ranks" },
  world_slices = { type = "integer", set = "option", default = 4, min = 1,
    doc = "with deterministic = 'world': number of slices of each batch, a power of two, at least "
      .. "the number of ranks" },
  world_threads = { type = "integer", min = 1,
    doc = "with deterministic = 'world': threads per rank, the same on all runs; default 1" },
  inference_mode = flag(true, "no gradients in validate, test and predict"),
  reload_dataloaders_every_n_epochs = { type = "integer", set = "option", default = 0, min = 0,
    doc = "reload the loaders every n epochs" },
  default_root_dir = { type = "string", set = "field", default = ".",
    doc = "folder for logs and checkpoints" },
  detect_anomaly = flag(false, "raise an error at the operation of training_step, or its "
    .. "derivative, that computes the first nan: slow, for debugging", "option"),
  cuda_graph = flag(false, "on a GPU: capture training_step and backward as a CUDA graph, which is "
    .. "launched in their place from the fourth batch on"),
  nonfinite = { type = "string", default = "stop", choices = { "stop", "skip", "allow" },
    set = "option", doc = "if gradients are not finite: end the fit, skip the step, or take it" },
  profiler = { type = "string", set = "option", choices = { "simple", "advanced", "trace", "xla" },
    doc = "measure hooks and operations: a table at the end; 'advanced': also of the script's "
      .. "functions and lines; 'trace': also trace.json for chrome://tracing and Perfetto; 'xla': "
      .. "also what was compiled for XLA devices and why (lt.xla.report)" },
  barebones = flag(false, "for benchmarks: no bar, logs, checkpoints, summary, sanity check"),
  enable_autolog_hparams = flag(true, "log the module's hparams", "option"),
  use_distributed_sampler = flag(true, "shard the data over the ranks", "option"),
  sync_batchnorm = flag(false, "batch norm takes the statistics of all ranks' samples", "option"),
  allow_batch_change = flag(false,
    "allow resuming with another global batch although schedulers count steps", "option"),
  elastic = { type = "table", convert = elastic_rules,
    doc = "a fit that is resumed on another number of ranks than it began with: {batch = 'global'} "
      .. "(the default) keeps the global batch, by accumulation on fewer ranks; {batch = "
      .. "'per_rank', lr = 'keep', 'linear' or 'sqrt'} keeps the batch of a rank, and multiplies "
      .. "learning rates by 1, by the ratio of the global batches, or by its square root" },
  plugins = { type = "table|object|string",
    doc = "older option: a precision, a checkpoint_io, a cluster environment, or a list of them; "
      .. "pass them to a strategy" },
  replica_check_every_n_steps = { type = "integer", set = "option", default = 50, min = 0,
    doc = "optimizer steps between comparisons of the ranks' weights; 0: none" },
  verify_every = { type = "integer", default = 0, min = 0,
    doc = "optimizer steps between checks in which each rank computes a batch of another rank "
      .. "again: a rank whose loss or gradients have other bits is named, and ends the fit; 0: "
      .. "none" },
  snapshot_every = { type = "number|string|table|boolean", default = 10, convert = to_interval,
    doc = "time between snapshots in memory that outlives the ranks, under `ltrain launch`; longer "
      .. "where they would cost more than 1 % of it; 0: after each batch, whatever it costs; "
      .. "false: none: seconds, '10 s' (min, h, d), 'DD:HH:MM:SS' or {hours =, minutes =, "
      .. "seconds =}" },
  timeout = duration.in_seconds("time after which a rank that is late, or sends no heartbeat (3 "
    .. "seconds at least), ends the job; by default LT_TIMEOUT or 60 seconds", { min = 0.1 }),
  fork_with_threads = { type = "boolean", default = false,
    doc = "fork ranks although the host program has other threads" },
}
