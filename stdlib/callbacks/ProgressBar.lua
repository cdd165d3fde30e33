--- stdlib/callbacks/ProgressBar.lua: a progress bar in one line of the terminal.
--
-- It is drawn at most ten times a second, in one line whatever the width of the terminal. Below the
-- line of an epoch it prints the metrics of its validation. If stderr is not a terminal, only these
-- two lines are written (and one for a test or validation run), so that log files are readable.
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local duration = require "ltrain.core.duration"
local progress_line = require "ltrain.callbacks.progress_line"
local to_numbers = require "ltrain.core.to_numbers"

local ProgressBar = Callback:extend("ProgressBar")

--- false: it runs on rank 0 only.
ProgressBar.all_ranks = false
ProgressBar.keeps_epoch = true

-- It shows what the module logs at the end of an epoch.
ProgressBar.comes_late = true

local OPTIONS <const> = {
  interval = duration.in_seconds("time between updates", { default = 0.1, min = 0 }),
  width = { type = "integer", default = 20, min = 0, doc = "width of the bar itself" },
}

--- ProgressBar{interval = 0.5}
function ProgressBar:init(options)
  local o = config.check(options, OPTIONS, "callbacks.ProgressBar")
  self.interval, self.width = o.interval, o.width
end

-- "name=value" of the metrics to show, without those in `except`. Values on the device are read
-- only here, when they are shown.
local function shown_metrics(trainer, except)
  local shown = {}
  for name, value in pairs(trainer.progress_bar_metrics) do
    if not (except and except[name]) then shown[name] = value end
  end
  return progress_line.metrics(to_numbers(shown))
end

-- The task as it stands.
local function facts(self)
  local task = self.task
  return { title = task.title, done = task.done, total = task.total, skipped = task.skipped,
    elapsed = self.trainer:now() - task.began, bar = self.width }
end

--- Returns the current line: "epoch 2 |####....| 120/469 [00:03<00:09, 38 it/s] loss=0.23".
function ProgressBar:line()
  return progress_line.text(facts(self), shown_metrics(self.trainer), math.huge)
end

-- The terminal.

-- The last column stays free: a line that fills it may be wrapped.
local function columns(self)
  return self.terminal and console.width() - 1 or math.huge
end

--- Clears the line, so that something else can be printed.
function ProgressBar:hide()
  if self.terminal and self.task then console.raw "\r\27[K" end
end

--- Draws the line again.
function ProgressBar:draw()
  if self.terminal and self.task then
    local text = progress_line.text(facts(self), shown_metrics(self.trainer), columns(self))
    console.raw("\r" .. text .. "\27[K")
  end
end

local function begin(self, trainer, title, total, done)
  self.trainer, self.terminal = trainer, console.is_terminal()
  self.task = { title = title, total = total, done = done or 0, skipped = done or 0,
    began = trainer:now(), drawn = -math.huge }
  console.set_bar(self)
  self:draw()
end

local function advance(self, trainer, done)
  local task = self.task
  if not task then return end
  task.done = done
  if not self.terminal then return end
  local now = trainer:now()
  if now - task.drawn >= self.interval or done == task.total then
    task.drawn = now
    self:draw()
  end
end

-- Lines that stay: text(width) of them. The run's console.log has them too.
local function leave(self, text)
  console.raw(text(columns(self)) .. "\n")
  console.copy(text(math.huge) .. "\n")
end

-- The task is over; `keeps` leaves its line, with all metrics but those in `except`.
local function finish(self, keeps, except)
  if not self.task then return end
  self:hide()
  if keeps then
    local task, metrics = facts(self), shown_metrics(self.trainer, except)
    leave(self, function(width) return progress_line.whole(task, metrics, width) end)
  end
  self.task = nil
  console.set_bar(nil)
end

-- The metrics of the last validation get a line: below that of their epoch when the epoch ends with
-- it, else above the bar as soon as training continues.
local function print_validation(self)
  local last = self.validation
  if not last then return end
  self.validation = nil
  self:hide()
  local metrics = progress_line.metrics(last.metrics)
  leave(self, function(width) return progress_line.wrap(last.title, metrics, width) end)
  self:draw()
end

local function note_validation(self, trainer)
  local metrics = trainer.running.loop.evaluated
  if trainer.sanity_checking or next(metrics) == nil then return end
  self.validation = { title = ("epoch %d, step %d, validation:"):format(trainer.current_epoch,
    trainer.progress.stepped), metrics = metrics } -- as in the rows of loggers
end

-- Hooks. Validation within fit takes the line for a while, then gives it back.

function ProgressBar:on_train_epoch_start(trainer)
  local done = trainer.progress.batch
  begin(self, trainer, ("epoch %d"):format(trainer.current_epoch), trainer.num_training_batches,
    done)
end

function ProgressBar:on_train_batch_start(trainer)
  -- Resumed in mid-epoch: the epoch's start was in another process.
  if not self.task then self:on_train_epoch_start(trainer) end
  print_validation(self)
end

function ProgressBar:on_train_batch_end(trainer, _, _, _, batch_idx)
  advance(self, trainer, batch_idx + 1)
end

function ProgressBar:on_train_epoch_end()
  finish(self, true, self.validation and self.validation.metrics)
  print_validation(self)
end

local function sum(counts)
  local total = 0
  for _, count in ipairs(counts or {}) do total = total + count end
  return total
end

local function begin_eval(self, trainer, title, counts)
  self.outer = self.task
  self:hide()
  self.task, self.batches = nil, 0
  begin(self, trainer, title, sum(counts))
end

local function advance_eval(self, trainer)
  self.batches = self.batches + 1
  advance(self, trainer, self.batches)
end

local function end_eval(self, keeps)
  finish(self, keeps)
  if self.outer then
    self.task, self.outer = self.outer, nil
    console.set_bar(self)
    self:draw()
  end
end

function ProgressBar:on_validation_start(trainer)
  local sanity = trainer.sanity_checking
  begin_eval(self, trainer, sanity and "sanity check" or "validation",
    sanity and trainer.num_sanity_val_batches or trainer.num_val_batches)
end

function ProgressBar:on_validation_batch_end(trainer) advance_eval(self, trainer) end

function ProgressBar:on_validation_end(trainer)
  local within_fit = trainer.running.fn == "fit"
  if within_fit then note_validation(self, trainer) end
  end_eval(self, not within_fit)
end

function ProgressBar:on_test_start(trainer)
  begin_eval(self, trainer, "test", trainer.num_test_batches)
end

function ProgressBar:on_test_batch_end(trainer) advance_eval(self, trainer) end

function ProgressBar:on_test_end() end_eval(self, true) end

function ProgressBar:on_predict_start(trainer)
  begin_eval(self, trainer, "predict", trainer.num_predict_batches)
end

function ProgressBar:on_predict_batch_end(trainer) advance_eval(self, trainer) end

function ProgressBar:on_predict_end() end_eval(self, true) end

function ProgressBar:on_exception()
  self.outer = nil
  finish(self, self.terminal)
  print_validation(self)
end

function ProgressBar:teardown()
  self.outer = nil
  finish(self, false)
  print_validation(self)
  self.trainer = nil
end

return ProgressBar
