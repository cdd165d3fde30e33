--- stdlib/trainer/setup/option_rules.lua: what is refused among the Trainer's options, beyond each
--- row.
local errors = require "ltrain.core.errors"

local option_rules = {}

--- Raises: the value of an option is of no use, and why.
function option_rules.refuse(option, value, why)
  errors.blame("Trainer: %s = %s: %s", option, errors.show(value), why)
end

-- Pairs of options that cannot both be set.
local function conflicts(o)
  if o.overfit_batches ~= 0 and (o.limit_train_batches ~= 1.0 or o.limit_val_batches ~= 1.0) then
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

--- Raises when options contradict each other.
function option_rules.check_together(o)
  local text = conflicts(o)
  if text then errors.blame("Trainer: %s", text) end
end

return option_rules
