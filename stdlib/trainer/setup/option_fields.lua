--- stdlib/trainer/setup/option_fields.lua: the options of a Trainer as its fields: each can be
--- read; one that is assigned has its effect, or the assignment is an error.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local options = require "ltrain.trainer.setup.options"

local option_fields = {}

--- Fields of the object itself, which the loops read whenever they need them.
option_fields.PLAIN = {
  "max_steps", "limit_train_batches", "limit_val_batches", "limit_test_batches",
  "limit_predict_batches", "val_check_interval", "check_val_every_n_epoch",
  "num_sanity_val_steps", "accumulate_grad_batches", "default_root_dir", "log_every_n_steps",
}

-- Those that are read out of trainer.options whenever they are needed.
local CHANGES <const> = {
  "allow_batch_change", "detect_anomaly", "enable_autolog_hparams", "gradient_clip_algorithm",
  "gradient_clip_val", "matmul_precision", "min_epochs", "min_steps", "nonfinite",
  "overfit_batches", "profiler", "reload_dataloaders_every_n_epochs",
  "replica_check_every_n_steps", "sync_batchnorm", "use_distributed_sampler", "world_slices",
}

local function set_of(...)
  local set = {}
  for _, names in ipairs { ... } do
    for _, name in ipairs(names) do set[name] = true end
  end
  return set
end

local IS_PLAIN <const> = set_of(option_fields.PLAIN, { "max_epochs", "callbacks" })
local IS_CHANGED <const> = set_of(CHANGES)

--- Sets a field, named as an option, that scripts can only read.
function option_fields.fix(trainer, name, value)
  local fixed = rawget(trainer, "_fixed") or {}
  rawset(trainer, "_fixed", fixed)
  fixed[name] = value
end

--- What the Trainer has made of an option, else what was given.
function option_fields.read(trainer, name)
  local fixed, given = rawget(trainer, "_fixed"), rawget(trainer, "options")
  if fixed and fixed[name] ~= nil then return fixed[name] end
  return given and given[name]
end

--- Whether there is an option of that name.
function option_fields.is_option(name) return options[name] ~= nil end

--- trainer.name = value, for a field that the object does not have.
function option_fields.assign(trainer, name, value)
  local row = options[name]
  if not row or IS_PLAIN[name] then return rawset(trainer, name, value) end
  if not IS_CHANGED[name] then
    errors.blame("trainer.%s: cannot be changed: set it when the Trainer is created, "
      .. "lt.Trainer{%s = %s}", name, name, errors.show(value))
  end
  if value == nil then value = row.default end
  if value ~= nil then value = config.value(value, row, "trainer", name) end
  trainer.options[name] = value
end

return option_fields
