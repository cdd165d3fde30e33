--- stdlib/callbacks/ThroughputMonitor.lua: logs the number of batches, samples and items (tokens)
--- per second.
--
-- At each log step it logs "train/time", "train/batches", "train/samples" (since the start), and,
-- over the last `window_size` batches, "train/device/batches_per_sec", ".../samples_per_sec" and,
-- with `length_fn`, ".../items_per_sec"; on several ranks "train/batches_per_sec" and so on are
-- totals over all ranks. With `flops_per_batch` it logs ".../flops_per_sec", and with
-- `available_flops` ".../mfu" (model FLOPs utilization), their quotient. It synchronizes with the
-- device at log steps only.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local ThroughputMonitor = Callback:extend("ThroughputMonitor")

--- It runs on all ranks: each counts its samples.
ThroughputMonitor.all_ranks = true
ThroughputMonitor.keeps_epoch = true

local OPTIONS <const> = {
  batch_size_fn = { type = "function", required = true,
    doc = "function(batch) that returns its number of samples" },
  length_fn = { type = "function", doc = "function(batch) that returns its number of items" },
  window_size = { type = "integer", default = 100, min = 2,
    doc = "number of batches in the measured window" },
  flops_per_batch = { type = "number", above = 0,
    doc = "floating-point operations of a batch, forward and backward" },
  available_flops = { type = "number", above = 0,
    doc = "floating-point operations per second of the device" },
  separator = { type = "string", default = "/", doc = "separator in names" },
}

ThroughputMonitor.__arguments = "| batch_size_fn length_fn"

--- ThroughputMonitor{batch_size_fn = function(batch) return batch[1].shape[1] end}
function ThroughputMonitor:init(options)
  local o = config.check(options, OPTIONS, "callbacks.ThroughputMonitor")
  for name, value in next, o do self[name] = value end
  if o.available_flops and not o.flops_per_batch then
    errors.blame("callbacks.ThroughputMonitor: available_flops needs flops_per_batch")
  end
end

-- Totals since the start; the last of the window before them.
local function restart(self)
  self._first, self._points = nil, {}
  self._total = { batches = 0, samples = 0, items = 0 }
end

function ThroughputMonitor:on_train_start() restart(self) end

-- Time that passes outside of training does not count.
local function pause(self) self._points = {} end
ThroughputMonitor.on_validation_start = function(self, trainer)
  if trainer.running.fn == "fit" and self._total then pause(self) end
end

local function count(self, batch, fn, name)
  local n = fn(batch)
  if type(n) ~= "number" then
    errors.blame("ThroughputMonitor: %s must return a number: got %s", name, errors.show(n))
  end
  return n
end

-- Takes a batch into the totals, and a point into the window.
local function add(self, trainer, batch)
  local total = self._total
  total.batches = total.batches + 1
  total.samples = total.samples + count(self, batch, self.batch_size_fn, "batch_size_fn")
  if self.length_fn then
    total.items = total.items + count(self, batch, self.length_fn, "length_fn")
  end
  local now = trainer:now()
  self._first = self._first or now
  table.insert(self._points, { time = now, batches = total.batches, samples = total.samples,
    items = total.items })
  if #self._points > self.window_size then table.remove(self._points, 1) end
end

-- Rates over the window: of this device, and of all of them if they are like it.
local function add_rates(self, trainer, row)
  local first, last = self._points[1], self._points[#self._points]
  local seconds = last.time - first.time
  if seconds <= 0 then return end
  local rates = {
    batches_per_sec = (last.batches - first.batches) / seconds,
    samples_per_sec = (last.samples - first.samples) / seconds,
    items_per_sec = self.length_fn and (last.items - first.items) / seconds,
  }
  if self.flops_per_batch then
    rates.flops_per_sec = rates.batches_per_sec * self.flops_per_batch
  end
  for name, rate in pairs(rates) do
    if rate then
      row["device" .. self.separator .. name] = rate
      if trainer.world_size > 1 then row[name] = rate * trainer.world_size end
    end
  end
  if self.available_flops then
    row["device" .. self.separator .. "mfu"] = rates.flops_per_sec / self.available_flops
  end
end

function ThroughputMonitor:on_train_batch_end(trainer, _, _, batch)
  local logs = trainer:logs_this_step()
  if logs and trainer.strategy.root_device ~= "cpu" then
    c.runtime.synchronize(trainer.strategy.root_device)
  end
  add(self, trainer, batch)
  if not logs or not trainer.is_global_zero then return end
  local total = self._total
  local row = { time = self._points[#self._points].time - self._first, batches = total.batches,
    samples = total.samples, items = self.length_fn and total.items or nil }
  if #self._points > 1 then add_rates(self, trainer, row) end
  local named = {}
  for name, value in pairs(row) do named["train" .. self.separator .. name] = value end
  trainer:log_to_loggers(named, trainer.progress.stepped)
end

return ThroughputMonitor
