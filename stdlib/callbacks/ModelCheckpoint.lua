--- stdlib/callbacks/ModelCheckpoint.lua: saves the best and the last checkpoints.
--
-- It decides in its hooks, and the loop writes the files at the end of the batch or epoch, where a
-- run can be resumed exactly. A file that is no longer among the best is removed after the new one
-- is complete; the file that this run was resumed from is never removed. Names of files of other
-- callbacks are not reused.
--
-- On several ranks, rank 0 decides, based on its metrics and files, and writes; the other ranks get
-- its state, and take part in saving metrics of all ranks.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local duration = require "ltrain.core.duration"
local errors = require "ltrain.core.errors"
local checkpoint_files = require "ltrain.callbacks.checkpoint_files"
local schema = require "ltrain.core.schema"
local to_numbers = require "ltrain.core.to_numbers"
local tree = require "ltrain.core.tree"

local ModelCheckpoint = Callback:extend("ModelCheckpoint")

--- It runs on all ranks: metrics of all ranks are saved.
ModelCheckpoint.all_ranks = true

ModelCheckpoint.saves_checkpoints = true

local OPTIONS <const> = {
  dirpath = { type = "string",
    doc = "folder; by default checkpoints/ in the folder of the logger" },
  filename = { type = "string",
    doc = "pattern of names, such as '{epoch}-{val_loss:.2f}'; by default '{epoch}-{step}'" },
  monitor = { type = "string", doc = "the logged metric that determines the best" },
  verbose = { type = "boolean", default = false, doc = "print each save" },
  save_last = { type = "boolean|string", default = false, choices = { false, true, "link" },
    doc = "also save the newest as last.ckpt; 'link': as a symbolic link to the file saved last" },
  save_top_k = { type = "integer", default = 1, min = -1,
    doc = "how many of the best to keep; -1: all, 0: none" },
  save_on_exception = { type = "boolean", default = false,
    doc = "save on_exception.ckpt, the state before the failed batch, if fit ends with an error" },
  save_weights_only = { type = "boolean", default = false,
    doc = "save weights and hyper-parameters only: training cannot be resumed from them" },
  mode = { type = "string", default = "min", choices = { "min", "max" },
    doc = "whether smaller or larger is better" },
  auto_insert_metric_name = { type = "boolean", default = true,
    doc = "write names as 'name=value'" },
  every_n_train_steps = { type = "integer", default = 0, min = 0, doc = "save every n steps" },
  train_time_interval = duration.in_seconds("save every so often", { above = 0 }),
  every_n_epochs = { type = "integer", min = 0, doc = "save every n epochs; the default is 1" },
  save_on_train_epoch_end = { type = "boolean",
    doc = "save at the end of epochs, not after validation; by default depends on the Trainer" },
  enable_version_counter = { type = "boolean", default = true,
    doc = "add -v1, -v2 to a name that exists, or that another run is about to write" },
}

local function check_triggers(self)
  local count = 0
  if self.every_n_train_steps > 0 then count = count + 1 end
  if self.train_time_interval then count = count + 1 end
  if self.every_n_epochs and self.every_n_epochs > 0 then count = count + 1 end
  if count > 1 then
    errors.blame("callbacks.ModelCheckpoint: every_n_train_steps, train_time_interval and "
      .. "every_n_epochs exclude each other")
  end
  if count == 0 and self.every_n_epochs == nil then self.every_n_epochs = 1 end
  self.every_n_epochs = self.every_n_epochs or 0
end

ModelCheckpoint.__arguments = "| dirpath filename monitor verbose save_last save_top_k "
  .. "save_on_exception save_weights_only mode auto_insert_metric_name every_n_train_steps "
  .. "train_time_interval every_n_epochs save_on_train_epoch_end enable_version_counter"

--- ModelCheckpoint{monitor = "val_loss", save_top_k = 3, save_last = true}
function ModelCheckpoint:init(options)
  local o = config.check(options, OPTIONS, "callbacks.ModelCheckpoint")
  if not o.monitor and o.save_top_k > 1 then
    errors.blame("callbacks.ModelCheckpoint: save_top_k = %d needs monitor", o.save_top_k)
  end
  -- `monitor` must stay nil by default: it decides when the callback is called.
  for name, value in next, o do self[name] = value end
  check_triggers(self)
  self.best_k_models = {} -- path -> score
  self._unsent, self._claims, self._pending, self._dirpath_set = {}, {}, {}, self.dirpath
  self.last_step_saved = -1
end

-- What it saves for.
local function reasons_of(self)
  return ("ModelCheckpoint(%s, %s, %d, %d, %s"):format(self.monitor, self.mode,
    self.every_n_train_steps, self.every_n_epochs, self.train_time_interval)
end

--- Distinguishes several of these by what they monitor, their folders and names.
function ModelCheckpoint:state_key()
  return ("%s, %s, %s)"):format(reasons_of(self), self._dirpath_set, self.filename)
end

--- Whether it keeps a file: no other callback removes it then.
function ModelCheckpoint:holds(path) return checkpoint_files.holds(self, path) end

function ModelCheckpoint:state_dict()
  local saved = checkpoint_files.state_dict(self)
  saved.dirpath = self.dirpath
  return saved
end

--- Restores the state. If the folder has changed, only the best path is used.
function ModelCheckpoint:load_state_dict(saved)
  schema.check(saved, checkpoint_files.STATE, "ModelCheckpoint")
  if saved.dirpath ~= self.dirpath then
    self.best_model_path = saved.best_model_path
    return
  end
  checkpoint_files.load_state_dict(self, saved)
end

-- The only one of a checkpoint's states that was saved for the same reasons; nil without.
local function state_of_same_reasons(self, states)
  local start, found = reasons_of(self), nil
  for key, state in pairs(states) do
    if key:sub(1, #start) == start and key:find("^[,)]", #start + 1) then
      if found then return nil end
      found = state
    end
  end
  return found
end

ModelCheckpoint.reads_state_dict = false -- its on_load_checkpoint leaves tensors unread

--- Restores the best file of a run that is resumed with another folder or other names.
function ModelCheckpoint:on_load_checkpoint(trainer, _, checkpoint)
  local states = checkpoint.callbacks or {}
  if trainer.running.fn ~= "fit" or states[self:state_key()] then return end -- or load_state_dict
  local saved = state_of_same_reasons(self, states)
  if saved then self:load_state_dict(saved) end
end

-- A folder that cannot be written is sent of before there is something to lose.
local function check_folder(self, trainer)
  if trainer.fast_dev_run or self.save_top_k == 0 and not self.save_last then return end
  local ok, message = c.io.can_write(self.dirpath)
  if not ok then errors.blame("ModelCheckpoint: %s", message) end
end

function ModelCheckpoint:setup(trainer, _, stage)
  if stage ~= "fit" then return end
  if not self.dirpath then self.dirpath = trainer:checkpoint_folder() end
  if trainer.is_global_zero then check_folder(self, trainer) end
  self.clock_start = trainer:agreed_now()
end

local function metrics_of(trainer)
  local metrics = { epoch = trainer.current_epoch, step = trainer.global_step }
  for name, value in pairs(trainer.callback_metrics) do metrics[name] = value end
  return to_numbers(metrics) -- a step's are on its device
end

-- Rank 0's metrics and what it knows of files, on every rank that is here; nil where rank 0 is
-- not: then nothing is decided. A rank that was not there for a while has missed decisions.
-- `in_step`: ranks without a sample are not here.
local function agree(self, trainer, in_step)
  local metrics = metrics_of(trainer)
  if trainer.world_size == 1 then return metrics end
  local group = in_step and trainer.running.ranks.active
  if group and group:ranks()[1] ~= 0 then return nil end
  local known = trainer.strategy:broadcast {
    metrics = metrics, clock_start = self.clock_start,
    files = checkpoint_files.to_send(self, not group),
  }
  if trainer.is_global_zero then return metrics end
  self.clock_start = known.clock_start
  checkpoint_files.receive(self, known.files)
  return known.metrics
end

-- The monitored metric, nan as the worst; nil when it is not there yet.
local function score_of(self, trainer, metrics)
  local score = metrics[self.monitor]
  if score == nil then
    local names = tree.keys(trainer.callback_metrics)
    local text = ("ModelCheckpoint: nothing called '%s' was logged; there is: %s%s"):format(
      self.monitor, #names > 0 and table.concat(names, ", ") or "nothing",
      errors.did_you_mean(self.monitor, names))
    local validated = trainer.progress.eval_batches > 0 or not trainer.enable_validation
    if validated then errors.blame("%s", text) end
    trainer:warn(text)
  elseif score ~= score then
    score = self.mode == "min" and math.huge or -math.huge
  end
  return score
end

local function save(self, trainer, metrics)
  local score
  if self.monitor then
    score = score_of(self, trainer, metrics)
    if score == nil then return end
    self.current_score = score
  end
  self.last_step_saved = trainer.global_step
  checkpoint_files.save(self, trainer, metrics, score)
  if self.save_last and not checkpoint_files.links_last(self) then
    checkpoint_files.save_last(self, trainer)
  end
end

-- When.

-- All ranks that are here come here together.
local function save_if_new(self, trainer, is_due, in_step)
  local running = trainer.running
  if trainer.fast_dev_run or running.fn ~= "fit" or trainer.sanity_checking then return end
  local metrics = agree(self, trainer, in_step)
  if metrics and is_due and self.last_step_saved ~= trainer.global_step then
    save(self, trainer, metrics)
  end
end

local function saves_at_epoch_end(self, trainer)
  if self.save_on_train_epoch_end ~= nil then return self.save_on_train_epoch_end end
  if not trainer.enable_validation then return true end
  return trainer.check_val_every_n_epoch == 1 and trainer.val_check_interval == 1.0
end

local function epoch_is_due(self, trainer)
  local n = self.every_n_epochs
  return n > 0 and (trainer.current_epoch + 1) % n == 0
end

function ModelCheckpoint:on_train_batch_end(trainer)
  if self.every_n_train_steps > 0 then
    local n = self.every_n_train_steps
    if trainer.global_step % n ~= 0 or trainer:settle_steps() % n ~= 0 then return end
  elseif self.train_time_interval then
    if trainer:agreed_now() - self.clock_start < self.train_time_interval then return end
    self.clock_start = trainer:agreed_now()
  else
    return
  end
  save_if_new(self, trainer, true, true)
end

function ModelCheckpoint:on_train_epoch_end(trainer)
  save_if_new(self, trainer, saves_at_epoch_end(self, trainer) and epoch_is_due(self, trainer))
end

function ModelCheckpoint:on_validation_end(trainer)
  save_if_new(self, trainer, not saves_at_epoch_end(self, trainer) and epoch_is_due(self, trainer))
end

function ModelCheckpoint:on_exception(trainer)
  checkpoint_files.release_all(self)
  if not self.save_on_exception or trainer.interrupted or trainer.fast_dev_run
    or not (trainer.training or trainer.validating) or trainer.running.fn ~= "fit"
    or c.runtime.device_faulted() then -- the weights cannot be read any more
    return
  end
  self.exception_path = checkpoint_files.exception_path(self, trainer)
  trainer:save_checkpoint(self.exception_path, { weights_only = self.save_weights_only })
  if trainer.is_global_zero then
    trainer:say("ModelCheckpoint: saved " .. self.exception_path)
  end
end

return ModelCheckpoint
