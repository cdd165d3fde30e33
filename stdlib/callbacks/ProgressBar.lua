--- stdlib/callbacks/ProgressBar.lua: one line on the terminal that follows the run.
--
-- Drawn at most ten times a second. Where stderr is no terminal there is one line an epoch (and one
-- a test or validation run), so that logs of jobs stay readable.
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local console = require "ltrain.trainer.console"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local ProgressBar = Callback:extend("ProgressBar")

--- The other ranks have nothing to show.
ProgressBar.all_ranks = false
ProgressBar.keeps_epoch = true

-- It shows what the module logs at the end of an epoch.
ProgressBar.comes_late = true

local OPTIONS <const> = {
  interval = { type = "number", default = 0.1, min = 0, doc = "seconds between two drawings" },
  width = { type = "integer", default = 20, min = 0, doc = "characters of the bar itself" },
}

--- ProgressBar{interval = 0.5}
function ProgressBar:init(options)
  local o = config.check(options, OPTIONS, "callbacks.ProgressBar")
  self.interval, self.width = o.interval, o.width
end

-- The text.

local function time_text(seconds)
  if seconds ~= seconds or seconds == math.huge then return "--:--" end
  seconds = math.floor(seconds + 0.5)
  if seconds >= 3600 then
    return ("%d:%02d:%02d"):format(seconds // 3600, seconds // 60 % 60, seconds % 60)
  end
  return ("%02d:%02d"):format(seconds // 60, seconds % 60)
end

local function value_text(value)
  if math.type(value) ~= "float" then return errors.printable(tostring(value)) end
  return ("%.4g"):format(value)
end

local function metrics_text(metrics)
  local parts = {}
  for name, value in tree.pairs(metrics) do
    parts[#parts + 1] = ("%s=%s"):format(errors.printable(name), value_text(value))
  end
  return table.concat(parts, " ")
end

local function rate_text(count, seconds)
  if seconds <= 0 then return "" end
  return ("%.4g it/s"):format(count / seconds)
end

-- Figures on the device are read only here, when they are shown.
local function shown_metrics(trainer)
  local shown = {}
  for name, value in pairs(trainer.progress_bar_metrics) do
    shown[name] = type(value) == "userdata" and value:item() or value
  end
  return shown
end

local function bar_text(self, part)
  local full = math.floor(part * self.width + 0.5)
  return ("|%s%s|"):format(("#"):rep(full), ("."):rep(self.width - full))
end

--- The line as it stands: "epoch 2 |####....| 120/469 [00:03<00:09, 38 it/s] loss=0.23".
function ProgressBar:line()
  local task = self.task
  local elapsed = self.trainer:now() - task.began
  local done = task.done - task.skipped
  local parts = { task.title }
  if task.total ~= math.huge then
    parts[#parts + 1] = bar_text(self, task.total > 0 and task.done / task.total or 1)
    local left = done > 0 and elapsed / done * (task.total - task.done) or math.huge
    parts[#parts + 1] = ("%d/%d [%s<%s, %s]"):format(task.done, task.total, time_text(elapsed),
      time_text(left), rate_text(done, elapsed))
  else
    parts[#parts + 1] = ("%d [%s, %s]"):format(task.done, time_text(elapsed),
      rate_text(done, elapsed))
  end
  parts[#parts + 1] = metrics_text(shown_metrics(self.trainer))
  return (table.concat(parts, " "):gsub("%s+$", ""))
end

-- The terminal.

--- Clears the line, so that something else can be written.
function ProgressBar:hide()
  if self.terminal and self.task then console.raw "\r\27[K" end
end

--- Draws the line again.
function ProgressBar:draw()
  if self.terminal and self.task then
    console.raw("\r" .. self:line():sub(1, console.width() - 1) .. "\27[K")
  end
end

local function begin(self, trainer, title, total, done)
  self.trainer, self.terminal = trainer, console.is_terminal()
  self.task = { title = title, total = total, done = done or 0, skipped = done or 0,
    began = trainer:now(), drawn = -math.huge }
  console.hold(self)
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

-- The task is over; `keeps` leaves its line.
local function finish(self, keeps)
  local task = self.task
  if not task then return end
  if keeps then
    if self.terminal then
      self:draw()
      console.raw "\n"
    else
      console.raw(self:line() .. "\n")
    end
  else
    self:hide()
  end
  self.task = nil
  console.hold(nil)
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
end

function ProgressBar:on_train_batch_end(trainer, _, _, _, batch_idx)
  advance(self, trainer, batch_idx + 1)
end

function ProgressBar:on_train_epoch_end()
  finish(self, true)
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
    console.hold(self)
    self:draw()
  end
end

function ProgressBar:on_validation_start(trainer)
  local sanity = trainer.running.sanity
  begin_eval(self, trainer, sanity and "sanity check" or "validation",
    sanity and { math.huge } or trainer.num_val_batches)
end

function ProgressBar:on_validation_batch_end(trainer) advance_eval(self, trainer) end

function ProgressBar:on_validation_end(trainer)
  end_eval(self, trainer.running.fn ~= "fit")
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
  finish(self, self.task ~= nil and self.terminal)
end

function ProgressBar:teardown()
  self.outer = nil
  finish(self, false)
  self.trainer = nil
end

return ProgressBar
