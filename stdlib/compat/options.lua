--- stdlib/compat/options.lua: Trainer options of older Lightning versions: accepted with a note, or
--- rejected with the current name.
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local old_options = {}

local function is_none(value)
  return not value or value == 0 or value == "0"
end

-- A count of devices that are not there: none is fine.
local function none(value) return is_none(value) and {} or nil end

local function gpus(value)
  return is_none(value) and {} or { accelerator = "gpu", devices = value }
end

local function tpus(value)
  return is_none(value) and {} or { accelerator = "tpu", devices = value }
end

local function nothing() return {} end

local function as(name)
  return function(value) return { [name] = value } end
end

local function amp(value) return { precision = value and "bf16-mixed" or nil } end

-- Rows: what to write instead, and a function that returns today's options for the old value; nil
-- where that is refused. Without a function every value is; with words beside it, all but these.
local ROWS <const> = {
  gpus = { "write accelerator = 'gpu' and devices", gpus },
  num_processes = { "write devices", as "devices" },
  tpu_cores = { "write accelerator = 'tpu' and devices", tpus },
  ipus = { "there are no IPUs here: write devices", none, "0 only" },
  auto_select_gpus = { "write devices", nothing },
  resume_from_checkpoint = { "write trainer:fit(module, {ckpt_path = ...})" },
  auto_lr_find = { "write the callback LearningRateFinder" },
  auto_scale_batch_size = { "write the callback BatchSizeFinder" },
  replace_sampler_ddp = { "write use_distributed_sampler", as "use_distributed_sampler" },
  track_grad_norm = { "log it in on_before_optimizer_step" },
  multiple_trainloader_mode = { "combine the loaders in the script" },
  move_metrics_to_cpu = { "metrics stay where they are cheap to keep" },
  use_amp = { "write precision = 'bf16-mixed'", amp },
  amp_backend = { "write precision = 'bf16-mixed'" },
  amp_level = { "write precision = 'bf16-mixed'" },
  weights_summary = { "write enable_model_summary, or the callback ModelSummary" },
  progress_bar_refresh_rate = { "write the callback ProgressBar" },
  log_gpu_memory = { "write the callback DeviceStatsMonitor" },
  terminate_on_nan = { "a loss that is not finite always ends the fit" },
  stochastic_weight_avg = { "write the callback StochasticWeightAveraging" },
  flush_logs_every_n_steps = { "give it to the logger" },
  checkpoint_callback = { "write enable_checkpointing, or the callback ModelCheckpoint" },
  weights_save_path = { "write dirpath of the callback ModelCheckpoint" },
  distributed_backend = { "write strategy", as "strategy" },
  period = { "write every_n_epochs of the callback ModelCheckpoint" },
  benchmark = { "kernels are chosen by shape, never by timing", none, "false only" },
  model_registry = { "there is no registry" },
  suggest_integrations = { "nothing is advertised" },
}

-- Accelerators that were how ranks work together.
local STRATEGIES <const> = { ddp = true, ddp_cpu = true, ddp_spawn = true, ddp2 = true, dp = true,
  horovod = true }

--- What to write instead of each old option, by name.
old_options.instead = {}
--- Which values are taken, by name: "yes", "no", or words.
old_options.taken = {}
for name, row in next, ROWS do
  old_options.instead[name] = row[1]
  old_options.taken[name] = row[2] and (row[3] or "yes") or "no"
end

local function put(found, name, value, old)
  local before = found[name]
  if before ~= nil and before ~= value then
    errors.blame("Trainer: %s is an older name of %s, and both are given: %s and %s", old, name,
      errors.show(found[old]), errors.show(before))
  end
  found[name] = value
end

-- Today's options for an old one.
local function take(found, name, value, notes)
  local instead, today = ROWS[name][1], ROWS[name][2]
  local new = today and today(value)
  if not new then errors.blame("Trainer: %s is not an option: %s", name, instead) end
  for key, field in tree.pairs(new) do put(found, key, field, name) end
  found[name] = nil
  notes[#notes + 1] = ("%s = %s is of older Lightning: %s"):format(name, errors.show(value),
    instead)
end

local function is_word(value, words)
  return type(value) == "string" and words[value:lower()]
end

-- Old values of options that are still there.
local function take_values(found, notes)
  if is_word(found.accelerator, STRATEGIES) then
    notes[#notes + 1] = ("accelerator = %s is of older Lightning: write strategy"):format(
      errors.show(found.accelerator))
    local name = found.accelerator
    put(found, "strategy", name, "accelerator")
    found.accelerator = nil
  end
  if is_word(found.strategy, { ddp_cpu = true }) then
    notes[#notes + 1] = "strategy = 'ddp_cpu' is of older Lightning: write 'ddp'"
    found.strategy = "ddp"
  end
end

--- A copy of options in today's words; the trainer notes what was not.
function old_options.translate(trainer, options)
  local found, notes = {}, {}
  for name, value in next, options do found[name] = value end
  for name, value in tree.pairs(options) do
    if ROWS[name] then take(found, name, value, notes) end
  end
  take_values(found, notes)
  for _, text in ipairs(notes) do trainer:note(text) end
  return found
end

return old_options
