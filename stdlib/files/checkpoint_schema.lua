-- stdlib/files/checkpoint_schema.lua: the fields and types of a checkpoint (core/schema.lua).
--
-- A file is checked against it before any of it is used. What callbacks, optimizers, schedulers,
-- metrics and loggers keep is checked by their load_state_dict.
local hooks = require "ltrain.core.hooks"

local REDUCE <const> = { key_of = { mean = true, min = true, max = true, sum = true } }
local NAMES <const> = { list = "string" }
local METRICS <const> = { map = "number|tensor", optional = true }

local LOADER <const> = { optional = true, fields = {} } -- a loader checks its own state

local PENDING <const> = { optional = true, fields = {
  eval_batches = "count", eval_rows = "count", is_last = "boolean?", logs = "boolean?",
  schedules = "boolean?", stepped = "boolean?", validated = "boolean?",
} }

-- How many have heard a hook in which the file was saved.
local CALLED <const> = { optional = true, fields = {
  before = "count", count = "count", hook = { key_of = hooks.by_name },
} }

-- How a fit began (trainer/ranks/elastic.lua).
local BEGAN <const> = { optional = true, fields = {
  batch_size = "count?", global_batch = "count?", lr_factor = "number", ranks = "count",
} }

-- Where a fit stands: state.progress.
local PROGRESS <const> = { fields = {
  batch = "count", began = BEGAN, called = CALLED, eval_batches = "count", eval_rows = "count",
  in_epoch = "boolean", is_last = "boolean?", left_out = "boolean?", loader = LOADER,
  nonfinite = "count?", pending = PENDING, predict_batches = "count", ranks = "count?",
  skipped = "count?",
  step_before = "count?", stepped = "count", train_batches = "count",
} }

-- A name that was logged.
local METRIC <const> = { fields = {
  count = "number?", epoch_name = "string", given = "table", key = "string",
  hook = { key_of = hooks.by_name },
  loader = "count", logger = "boolean", metric = "string?", name = "string", on_epoch = "boolean",
  on_step = "boolean", prog_bar = "boolean", rank_zero_only = "boolean", reduce = REDUCE,
  serial = "integer?", step_name = "string", step_value = "number?", step_weight = "number?",
  sync_dist = "boolean", total = "number?",
} }

local WINDOW <const> = { optional = true, fields = {
  batches = "count", cleared = "boolean", rank_zero_only = "boolean?", used = "number",
  weight = "number",
} }

local LOOPS <const> = { optional = true, fields = {
  callback_metrics = METRICS, fit = PROGRESS, logged_metrics = METRICS, nominal_batch = "number?",
  progress_bar_metrics = METRICS, rank_zero_only = "boolean?",
  results = { list = METRIC, optional = true }, window = WINDOW,
  cut = { optional = true, fields = { global_batch = "count?", ranks = "count?" } },
} }

return { fields = {
  MixedPrecision = "table?", -- the GradScaler's state
  callbacks = { map = "any", optional = true },
  class_name = "string?",
  current_model_state = { map = "any", optional = true }, -- WeightAveraging's
  data_module_hyper_parameters = "table?",
  epoch = "count",
  global_step = "count",
  gradients = { map = "tensor", optional = true },
  hyper_parameters = "table?",
  loggers = { optional = true, list = { fields = { log_dir = "string", state = "table?" } } },
  loops = LOOPS,
  lr_schedulers = { list = "any", optional = true },
  metrics = { map = "table", optional = true },
  modes = { optional = true, fields = { evaluating = NAMES, frozen = NAMES } },
  optimizer_states = { list = "any", optional = true },
  precision = "table?", -- state of the Precision, as scales of float8
  random = { map = "integer", optional = true },
  rank_gradients = { optional = true, list = { fields = {
    gradients = { map = "tensor" }, used = "number", weight = "number",
  } } },
  slices = { optional = true,
    list = { fields = { grads = { map = "tensor" }, weight = "number" } } },
  strategy = { optional = true, fields = { class = "string", state = "table" } },
  state_dict = { map = "any" }, -- tensors, and what get_extra_state returns
} }
