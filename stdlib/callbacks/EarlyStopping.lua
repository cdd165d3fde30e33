--- stdlib/callbacks/EarlyStopping.lua: stops the fit when a logged metric stops improving.
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_better = require "ltrain.core.is_better"
local schema = require "ltrain.core.schema"
local tree = require "ltrain.core.tree"

local EarlyStopping = Callback:extend("EarlyStopping")

--- It runs on all ranks; metrics are equal on all of them, so all decide the same.
EarlyStopping.all_ranks = true

--- Marks it as trainer.early_stopping_callback.
EarlyStopping.stops_early = true

local OPTIONS <const> = {
  monitor = { type = "string", required = true, doc = "name of the logged metric" },
  min_delta = { type = "number", default = 0.0, min = 0,
    doc = "smaller changes are not an improvement" },
  patience = { type = "integer", default = 3, min = 0,
    doc = "number of checks without improvement after which the fit stops" },
  verbose = { type = "boolean", default = false, doc = "print each improvement" },
  mode = { type = "string", default = "min", choices = { "min", "max" },
    doc = "whether smaller or larger is better" },
  strict = { type = "boolean", default = true,
    doc = "raise an error if the metric was not logged" },
  check_finite = { type = "boolean", default = true,
    doc = "stop if the metric is nan or inf" },
  stopping_threshold = { type = "number", doc = "stop if the metric is better than this" },
  divergence_threshold = { type = "number", doc = "stop if the metric is worse than this" },
  check_on_train_epoch_end = { type = "boolean",
    doc = "check at the end of epochs, not after validation; by default depends on the Trainer" },
}

EarlyStopping.__arguments = "| monitor min_delta patience verbose mode strict check_finite "
  .. "stopping_threshold divergence_threshold check_on_train_epoch_end log_rank_zero_only"

--- EarlyStopping{monitor = "val_loss", patience = 3}
function EarlyStopping:init(options)
  local o = config.check(options, OPTIONS, "callbacks.EarlyStopping")
  for name, value in next, o do self[name] = value end
  self.wait_count, self.stopped_epoch = 0, 0
  --- Why it ended the fit: "not_stopped", "stopping_threshold", "divergence_threshold",
  --- "patience_exhausted" or "non_finite_metric"; and the same in words, nil without.
  self.stopping_reason, self.stopping_reason_message = "not_stopped", nil
  self.best_score = self.mode == "min" and math.huge or -math.huge
end

--- Distinguishes several of these by the metric that they monitor.
function EarlyStopping:state_key()
  return ("EarlyStopping(%s, %s)"):format(self.monitor, self.mode)
end

function EarlyStopping:state_dict()
  return { wait_count = self.wait_count, stopped_epoch = self.stopped_epoch,
    best_score = self.best_score, patience = self.patience,
    stopping_reason = self.stopping_reason, stopping_reason_message = self.stopping_reason_message }
end

function EarlyStopping:load_state_dict(state)
  schema.check(state, { best_score = "number", patience = "count", stopped_epoch = "count",
    stopping_reason = "string?", stopping_reason_message = "string?", wait_count = "count" },
    "EarlyStopping")
  self.wait_count, self.stopped_epoch = state.wait_count, state.stopped_epoch
  self.best_score, self.patience = state.best_score, state.patience
  self.stopping_reason = state.stopping_reason or "not_stopped"
  self.stopping_reason_message = state.stopping_reason_message
end

function EarlyStopping:setup(trainer)
  if self.check_on_train_epoch_end == nil then
    self.check_on_train_epoch_end = trainer.val_check_interval == 1.0
      and trainer.check_val_every_n_epoch == 1
  end
end

-- The monitored metric, as rank 0 has it; nil when it is not there and need not be.
local function current_value(self, trainer)
  local value = trainer.strategy:broadcast(trainer.callback_metrics[self.monitor])
  if value ~= nil then return value end
  local names = tree.keys(trainer.callback_metrics)
  local text = ("EarlyStopping: nothing called '%s' was logged; there is: %s%s"):format(
    self.monitor,
    #names > 0 and table.concat(names, ", ") or "nothing",
    errors.did_you_mean(self.monitor, names))
  if self.strict then errors.blame("%s", text) end
  trainer:warn(text)
end

-- Why the fit is to end, and that in words; or nil, and whether the value is the best so far.
local function judge(self, current)
  if self.check_finite and (current ~= current or math.abs(current) == math.huge) then
    return "non_finite_metric", ("%s is %s"):format(self.monitor,
      current ~= current and "nan" or current)
  elseif self.stopping_threshold and is_better(self.mode, current, self.stopping_threshold) then
    return "stopping_threshold", ("%s = %g is better than %g"):format(self.monitor, current,
      self.stopping_threshold)
  elseif self.divergence_threshold and is_better(self.mode, self.divergence_threshold, current) then
    return "divergence_threshold", ("%s = %g is worse than %g"):format(self.monitor, current,
      self.divergence_threshold)
  end
  local margin = self.mode == "min" and self.min_delta or -self.min_delta
  if is_better(self.mode, current + margin, self.best_score) then
    self.best_score, self.wait_count = current, 0
    return nil, true
  end
  self.wait_count = self.wait_count + 1
  if self.wait_count >= self.patience then
    return "patience_exhausted", ("%s was not better than %g in the last %d checks"):format(
      self.monitor, self.best_score, self.wait_count)
  end
end

local function check(self, trainer)
  if trainer.fast_dev_run then return end
  local current = current_value(self, trainer)
  if current == nil then return end
  local reason, detail = judge(self, current)
  if not reason and detail and self.verbose then
    trainer:say(("EarlyStopping: %s = %g is the best so far"):format(self.monitor, current))
  end
  if reason then
    trainer.should_stop, self.stopped_epoch = true, trainer.current_epoch
    self.stopping_reason, self.stopping_reason_message = reason, detail
    trainer:say(("EarlyStopping: %s: stops in epoch %d"):format(detail, trainer.current_epoch))
  end
end

function EarlyStopping:on_train_epoch_end(trainer)
  if self.check_on_train_epoch_end then check(self, trainer) end
end

function EarlyStopping:on_validation_end(trainer)
  local running = trainer.running
  if not self.check_on_train_epoch_end and running.fn == "fit" and not trainer.sanity_checking then
    check(self, trainer)
  end
end

return EarlyStopping
