--- stdlib/callbacks/ModelCheckpoint.lua: saves checkpoints: the best ones, the last one.
--
-- It decides in its hooks and asks the loop for the files, which are written at the end of the
-- batch or epoch, where they resume exactly. A file that drops out of the best is removed only
-- when the new one is whole, and never the one that this run was resumed from: no other file holds
-- the state that the run continues.
--
-- Of several ranks rank 0 decides, by its figures and its files, and writes; the others take over
-- what it knows, and take part where figures of all of them go into the file.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local file_name = require "ltrain.callbacks.file_name"
local is_better = require "ltrain.callbacks.is_better"
local tree = require "ltrain.core.tree"

local ModelCheckpoint = Callback:extend("ModelCheckpoint")

--- Figures of all ranks go into the files.
ModelCheckpoint.all_ranks = true

ModelCheckpoint.saves_checkpoints = true

local OPTIONS <const> = {
  dirpath = { type = "string", doc = "folder; by default checkpoints/ below the logger's" },
  filename = { type = "string",
    doc = "pattern of names, like '{epoch}-{val_loss:.2f}'; by default '{epoch}-{step}'" },
  monitor = { type = "string", doc = "the logged figure that says which is best" },
  verbose = { type = "boolean", default = false, doc = "tell each save" },
  save_last = { type = "boolean", default = false, doc = "also keep the newest as last.ckpt" },
  save_top_k = { type = "integer", default = 1, min = -1,
    doc = "how many of the best are kept; -1: all, 0: none" },
  save_on_exception = { type = "boolean", default = false,
    doc = "save on_exception.ckpt when the fit ends in an error" },
  save_weights_only = { type = "boolean", default = false,
    doc = "weights and hyper-parameters only: training cannot go on from them" },
  mode = { type = "string", default = "min", choices = { "min", "max" },
    doc = "whether less or more is better" },
  auto_insert_metric_name = { type = "boolean", default = true, doc = "names as 'name=value'" },
  every_n_train_steps = { type = "integer", default = 0, min = 0, doc = "save every n steps" },
  train_time_interval = { type = "number", above = 0, doc = "save every so many seconds" },
  every_n_epochs = { type = "integer", min = 0, doc = "save every n epochs; the default is 1" },
  save_on_train_epoch_end = { type = "boolean",
    doc = "save at the end of epochs, not after validation; the default fits the Trainer" },
  enable_version_counter = { type = "boolean", default = true,
    doc = "add -v1, -v2 to a name that is taken, not write over it" },
}

local function check_triggers(self)
  local given = 0
  if self.every_n_train_steps > 0 then given = given + 1 end
  if self.train_time_interval then given = given + 1 end
  if self.every_n_epochs and self.every_n_epochs > 0 then given = given + 1 end
  if given > 1 then
    errors.blame("callbacks.ModelCheckpoint: every_n_train_steps, train_time_interval and "
      .. "every_n_epochs exclude each other")
  end
  if given == 0 and self.every_n_epochs == nil then self.every_n_epochs = 1 end
  self.every_n_epochs = self.every_n_epochs or 0
end

--- ModelCheckpoint{monitor = "val_loss", save_top_k = 3, save_last = true}
function ModelCheckpoint:init(options)
  local o = config.check(options, OPTIONS, "callbacks.ModelCheckpoint")
  if not o.monitor and o.save_top_k > 1 then
    errors.blame("callbacks.ModelCheckpoint: save_top_k = %d needs monitor", o.save_top_k)
  end
  -- `monitor` must stay nil when not given: it decides when the callback is called.
  for name, value in next, o do self[name] = value end
  check_triggers(self)
  self.best_k_models = {} -- path -> score
  self.last_step_saved = -1
end

--- Two of these save for different reasons.
function ModelCheckpoint:state_key()
  return ("ModelCheckpoint(%s, %s, %d, %d, %s)"):format(self.monitor, self.mode,
    self.every_n_train_steps, self.every_n_epochs, self.train_time_interval)
end

local STATE <const> = {
  "best_model_path", "best_model_score", "current_score", "kth_best_model_path", "kth_value",
  "last_model_path", "last_step_saved", "best_k_models",
}

function ModelCheckpoint:state_dict()
  local saved = { dirpath = self.dirpath }
  for _, name in ipairs(STATE) do saved[name] = self[name] end
  return saved
end

--- In another folder only the best path still means something.
function ModelCheckpoint:load_state_dict(saved)
  if saved.dirpath ~= self.dirpath then
    self.best_model_path = saved.best_model_path
    return
  end
  for _, name in ipairs(STATE) do self[name] = saved[name] end
  self.best_k_models = self.best_k_models or {}
end

-- A folder that cannot be written is told of before there is something to lose.
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

-- Which files.

local function figures_of(trainer)
  local figures = { epoch = trainer.current_epoch, step = trainer.global_step }
  for name, value in pairs(trainer.callback_metrics) do figures[name] = value end
  return figures
end

-- Rank 0's figures and what it knows of files, on every rank that is here; nil where rank 0 is
-- not: then nothing is decided. A rank that was not there for a while has missed decisions.
-- `in_step`: ranks without a sample are not here.
local function agree(self, trainer, in_step)
  local figures = figures_of(trainer)
  if trainer.world_size == 1 then return figures end
  local group = in_step and trainer.running.active
  if group and group:ranks()[1] ~= 0 then return nil end
  local known = { figures = figures, clock_start = self.clock_start }
  for _, name in ipairs(STATE) do known[name] = self[name] end
  known = trainer.strategy:broadcast(known)
  self.clock_start = known.clock_start
  for _, name in ipairs(STATE) do self[name] = known[name] end
  return known.figures
end

-- Whether a file is the one that this run was resumed from.
local function is_source(trainer, path)
  local source = trainer.running.resumed_from
  return source ~= nil and c.io.same(path, source)
end

-- A file of weights alone must not take the place of a whole state that the run continues.
local function must_stay(self, trainer, path)
  return self.save_weights_only and is_source(trainer, path)
end

-- A path that no file has, but those that this save may write over.
local function free_path(self, trainer, name, own)
  local path, version = ("%s/%s.ckpt"):format(self.dirpath, name), 0
  local io = trainer.strategy.checkpoint_io
  while self.enable_version_counter and path ~= own and io:exists(path)
    or must_stay(self, trainer, path) do
    version = version + 1
    path = ("%s/%s-v%d.ckpt"):format(self.dirpath, name, version)
  end
  return path
end

local function path_for(self, trainer, figures, own)
  local name = file_name.format(self.filename or "{epoch}-{step}", figures,
    self.auto_insert_metric_name)
  return free_path(self, trainer, name, own)
end

-- Whether a file lies in our folder: what a resumed run had elsewhere belongs to that run.
local function is_ours(self, path)
  return path:sub(1, #self.dirpath + 1) == self.dirpath .. "/"
end

local function request(self, trainer, path, old)
  local options = { weights_only = self.save_weights_only, agreed = true } -- all ranks ask
  trainer:request_checkpoint(path, options, function()
    if self.verbose then trainer:say("ModelCheckpoint: saved " .. path) end
    if old and old ~= path and is_ours(self, old) and not is_source(trainer, old) then
      trainer.strategy.checkpoint_io:remove(old)
    end
  end)
end

-- Without a monitor: the newest is the best.
local function save_newest(self, trainer, figures)
  local old = self.best_model_path
  local path = path_for(self, trainer, figures, old)
  self.best_model_path = path
  request(self, trainer, path, self.save_top_k == 1 and old or nil)
end

-- The path with the worst (or best) score.
local function extreme(self, best)
  local found
  for path in tree.pairs(self.best_k_models) do
    local a, b = self.best_k_models[path], self.best_k_models[found]
    if not found or best and is_better(self.mode, a, b)
      or not best and is_better(self.mode, b, a) then
      found = path
    end
  end
  return found
end

local function count(models)
  local n = 0
  for _ in pairs(models) do n = n + 1 end
  return n
end

local function save_among_best(self, trainer, figures, score)
  local models, k = self.best_k_models, self.save_top_k
  local full, old = k ~= -1 and count(models) >= k, nil
  if full then
    old = extreme(self, false)
    if not is_better(self.mode, score, models[old]) then return end
    models[old] = nil
  end
  local path = path_for(self, trainer, figures)
  models[path] = score
  self.best_model_path = extreme(self, true)
  self.best_model_score = models[self.best_model_path]
  self.kth_best_model_path = extreme(self, false)
  self.kth_value = models[self.kth_best_model_path]
  request(self, trainer, path, old)
end

-- The watched figure, nan as the worst; nil when it is not there yet.
local function score_of(self, trainer, figures)
  local score = figures[self.monitor]
  if score == nil then
    local names = tree.keys(trainer.callback_metrics)
    local text = ("ModelCheckpoint: nothing called '%s' was logged; there is: %s%s"):format(
      self.monitor, #names > 0 and table.concat(names, ", ") or "nothing",
      errors.did_you_mean(self.monitor, names))
    local validated = trainer.progress.eval_batches > 0 or not trainer.running.val_sources
    if validated then errors.blame("%s", text) end
    trainer:warn(text)
  elseif score ~= score then
    score = self.mode == "min" and math.huge or -math.huge
  end
  return score
end

local function save_last(self, trainer)
  if not self.save_last then return end
  local path = self.last_model_path
  if not path or must_stay(self, trainer, path) then path = free_path(self, trainer, "last") end
  self.last_model_path = path
  request(self, trainer, path)
end

local function save(self, trainer, figures)
  local score
  if self.monitor then
    score = score_of(self, trainer, figures)
    if score == nil then return end
    self.current_score = score
  end
  self.last_step_saved = trainer.global_step
  if self.save_top_k ~= 0 then
    if score then
      save_among_best(self, trainer, figures, score)
    else
      save_newest(self, trainer, figures)
    end
  end
  save_last(self, trainer)
end

-- When.

-- All ranks that are here come here together.
local function save_if_new(self, trainer, is_due, in_step)
  local running = trainer.running
  if trainer.fast_dev_run or running.fn ~= "fit" or running.sanity then return end
  local figures = agree(self, trainer, in_step)
  if figures and is_due and self.last_step_saved ~= trainer.global_step then
    save(self, trainer, figures)
  end
end

local function saves_at_epoch_end(self, trainer)
  if self.save_on_train_epoch_end ~= nil then return self.save_on_train_epoch_end end
  local sources = trainer.running.val_sources
  if not sources or #sources == 0 then return true end
  return trainer.check_val_every_n_epoch == 1 and trainer.val_check_interval == 1.0
end

local function epoch_is_due(self, trainer)
  local n = self.every_n_epochs
  return n > 0 and (trainer.current_epoch + 1) % n == 0
end

function ModelCheckpoint:on_train_batch_end(trainer)
  if self.every_n_train_steps > 0 then
    if trainer.global_step % self.every_n_train_steps ~= 0 then return end
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
  local running = trainer.running
  if not self.save_on_exception or trainer.interrupted or not running or running.fn ~= "fit"
    or trainer.fast_dev_run or trainer.global_step == 0 then
    return
  end
  local path = (self.dirpath or trainer:checkpoint_folder()) .. "/on_exception.ckpt"
  trainer:save_checkpoint(path, { weights_only = self.save_weights_only })
  trainer:say("ModelCheckpoint: saved " .. path)
end

return ModelCheckpoint
