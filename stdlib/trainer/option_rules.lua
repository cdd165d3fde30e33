--- stdlib/trainer/option_rules.lua: what is refused among the Trainer's options, beyond each row.
local errors = require "ltrain.core.errors"

local option_rules = {}

-- Flags of Lightning's Trainer that are gone there or have no place here, and what to write.
option_rules.removed = {
  gpus = "write devices and accelerator",
  num_processes = "write devices",
  tpu_cores = "there are no TPUs here",
  ipus = "there are no IPUs here",
  auto_select_gpus = "write devices",
  resume_from_checkpoint = "write trainer:fit(module, {ckpt_path = ...})",
  auto_lr_find = "there is no learning-rate finder",
  auto_scale_batch_size = "there is no batch-size finder",
  replace_sampler_ddp = "write use_distributed_sampler",
  track_grad_norm = "log it in on_before_optimizer_step",
  multiple_trainloader_mode = "combine the loaders in the script",
  move_metrics_to_cpu = "metrics stay where they are cheap to keep",
  amp_backend = "write precision",
  amp_level = "write precision",
  weights_summary = "write enable_model_summary, or the callback ModelSummary",
  progress_bar_refresh_rate = "write the callback ProgressBar",
  log_gpu_memory = "there is no such log",
  terminate_on_nan = "a loss that is not finite always ends the fit",
  stochastic_weight_avg = "write a callback",
  flush_logs_every_n_steps = "give it to the logger",
  checkpoint_callback = "write enable_checkpointing, or the callback ModelCheckpoint",
  weights_save_path = "write dirpath of the callback ModelCheckpoint",
  distributed_backend = "write strategy",
  period = "write every_n_epochs of the callback ModelCheckpoint",
  benchmark = "kernels are chosen by shape, never by timing",
  profiler = "there is no profiler yet",
  plugins = "write precision or strategy",
  sync_batchnorm = "there is one process",
  model_registry = "there is no registry",
  suggest_integrations = "nothing is advertised",
}

--- Raises: the value of an option is of no use, and why.
function option_rules.refuse(option, value, why)
  errors.blame("Trainer: %s = %s: %s", option, errors.show(value), why)
end

--- Raises when a removed flag is among the given ones.
function option_rules.refuse_removed(given)
  for name in next, given do
    local instead = option_rules.removed[name]
    if instead then errors.blame("Trainer: %s is not an option: %s", name, instead) end
  end
end

-- Pairs of options that cannot both be set.
local function conflicts(o)
  if o.overfit_batches ~= 0 and (o.limit_train_batches ~= 1.0 or o.limit_val_batches ~= 1.0) then
    return "overfit_batches sets limit_train_batches and limit_val_batches: give one of them"
  elseif o.gradient_clip_val == nil and o.gradient_clip_algorithm == "value" then
    return "gradient_clip_algorithm needs gradient_clip_val"
  elseif o.min_epochs and o.max_epochs and o.max_epochs ~= -1 and o.min_epochs > o.max_epochs then
    return ("min_epochs = %d is above max_epochs = %d"):format(o.min_epochs, o.max_epochs)
  end
end

--- Raises when options contradict each other.
function option_rules.check_together(o)
  local text = conflicts(o)
  if text then errors.blame("Trainer: %s", text) end
end

return option_rules
