--- stdlib/trainer/setup/option_rules.lua: checks of the Trainer's options that involve several of
--- them.
local errors = require "ltrain.core.errors"
local logger_words = require "ltrain.loggers.logger_names"
local tree = require "ltrain.core.tree"

local option_rules = {}

--- Raises: the value of an option is of no use, and why.
function option_rules.refuse(option, value, why)
  errors.blame("Trainer: %s = %s: %s", option, errors.show(value), why)
end

--- What barebones sets: all that costs time beside the training itself.
option_rules.barebones = {
  enable_checkpointing = false, enable_model_summary = false, enable_progress_bar = false,
  logger = false, log_every_n_steps = 0, num_sanity_val_steps = 0, fast_dev_run = false,
  detect_anomaly = false,
}

-- The first option that was set together with barebones and that it would overrule.
local function beside_barebones(explicit)
  for name, value in tree.pairs(option_rules.barebones) do
    local said = explicit[name]
    if name == "fast_dev_run" and said == 0 then said = false end
    if name == "logger" and logger_words.is_none(said) then said = false end
    if said ~= nil and said ~= value then
      return ("barebones sets %s = %s: give one of them"):format(name, errors.show(value))
    end
  end
end

-- Pairs of options that cannot both be set; `explicit` has those that were.
local function conflicts(o, explicit)
  local overruled = o.barebones and beside_barebones(explicit)
  if overruled then
    return overruled
  elseif o.overfit_batches ~= 0
    and (explicit.limit_train_batches or explicit.limit_val_batches) then
    return "overfit_batches sets limit_train_batches and limit_val_batches: give one of them"
  elseif o.gradient_clip_val == nil and o.gradient_clip_algorithm == "value" then
    return "gradient_clip_algorithm needs gradient_clip_val"
  elseif o.min_epochs and o.max_epochs and o.max_epochs ~= -1 and o.min_epochs > o.max_epochs then
    return ("min_epochs = %d is above max_epochs = %d"):format(o.min_epochs, o.max_epochs)
  elseif o.world_threads and o.deterministic ~= "world" then
    return "world_threads needs deterministic = 'world'"
  elseif o.sync_batchnorm and o.deterministic == "world" then
    return "sync_batchnorm and deterministic = 'world' exclude each other: there batch norm takes "
      .. "the statistics of each slice"
  end
end

--- Raises when options contradict each other. `explicit`: those that were passed, without defaults.
function option_rules.check_together(o, explicit)
  local text = conflicts(o, explicit)
  if text then errors.blame("Trainer: %s", text) end
end

return option_rules
