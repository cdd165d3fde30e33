--- stdlib/callbacks/LearningRateMonitor.lua: logs the learning rates.
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local LearningRateMonitor = Callback:extend("LearningRateMonitor")

--- It runs on all ranks: learning rates are also in callback_metrics, which are equal on all ranks.
LearningRateMonitor.all_ranks = true
LearningRateMonitor.keeps_epoch = true

local OPTIONS <const> = {
  logging_interval = { type = "string", choices = { "step", "epoch" },
    doc = "when to log; by default at the interval of each scheduler" },
  log_momentum = { type = "boolean", default = false, doc = "also log the momentum" },
  log_weight_decay = { type = "boolean", default = false, doc = "also log the weight decay" },
  log_key_prefix = { type = "string", default = "", doc = "prefix of every name" },
}

LearningRateMonitor.__arguments = "| logging_interval log_momentum log_weight_decay"

--- LearningRateMonitor{logging_interval = "step"}
function LearningRateMonitor:init(options)
  local o = config.check(options, OPTIONS, "callbacks.LearningRateMonitor")
  for name, value in next, o do self[name] = value end
  self.lrs = {}
end

local function check_names(optimizer)
  local seen = {}
  for i, group in ipairs(optimizer.param_groups) do
    local name = group.name
    if name and seen[name] then
      errors.blame("LearningRateMonitor: groups %d and %d of %s have the same name: %s", seen[name],
        i, getmetatable(optimizer).__name, errors.show(name))
    end
    if name then seen[name] = i end
  end
end

function LearningRateMonitor:on_train_start(trainer)
  if trainer.is_global_zero and #trainer.loggers == 0 and not trainer.fast_dev_run then
    errors.blame("LearningRateMonitor: there is no logger: the Trainer was made with "
      .. "logger = false")
  end
  for _, optimizer in ipairs(trainer.optimizers) do check_names(optimizer) end
end

-- Optimizers, each with a name and the interval of its scheduler ("step" without one).
local function entries(trainer)
  local list, used = {}, {}
  for _, optimizer in ipairs(trainer.optimizers) do
    local interval, name = "step", nil
    for _, schedule in ipairs(trainer.lr_scheduler_configs) do
      if schedule.scheduler.optimizer == optimizer then
        interval, name = schedule.interval, schedule.name
      end
    end
    name = name or "lr-" .. getmetatable(optimizer).__name
    used[name] = (used[name] or 0) + 1
    if used[name] > 1 then name = ("%s-%d"):format(name, used[name] - 1) end
    list[#list + 1] = { optimizer = optimizer, interval = interval, name = name }
  end
  return list
end

local function momentum_of(group)
  return group.momentum or type(group.betas) == "table" and group.betas[1] or 0
end

-- Of group i: the group's own name, or with others "pg" and its number.
local function name_of(self, entry, i)
  local groups = entry.optimizer.param_groups
  local own = groups[i].name or #groups > 1 and ("pg%d"):format(i)
  return self.log_key_prefix .. entry.name .. (own and "/" .. own or "")
end

local function add_rates(self, row, entry)
  for i, group in ipairs(entry.optimizer.param_groups) do
    local name = name_of(self, entry, i)
    row[name] = group.lr
    self.lrs[name] = group.lr
    if self.log_momentum then row[name .. "-momentum"] = momentum_of(group) end
    if self.log_weight_decay then row[name .. "-weight_decay"] = group.weight_decay or 0 end
  end
end

local function log(self, trainer, interval)
  local row = {}
  for _, entry in ipairs(entries(trainer)) do
    if self.logging_interval or entry.interval == interval then add_rates(self, row, entry) end
  end
  if next(row) == nil then return end
  for name, value in pairs(row) do trainer.callback_metrics[name] = value end
  trainer:log_to_loggers(row, trainer.progress.stepped)
end

function LearningRateMonitor:on_train_batch_start(trainer)
  if self.logging_interval ~= "epoch" and trainer:logs_this_step() then
    log(self, trainer, "step")
  end
end

function LearningRateMonitor:on_train_epoch_start(trainer)
  if self.logging_interval ~= "step" then log(self, trainer, "epoch") end
end

return LearningRateMonitor
