--- stdlib/callbacks/DeviceStatsMonitor.lua: logs memory and load of the device at the start and end
-- of batches.
--
-- Rows have names like "DeviceStatsMonitor.on_train_batch_start/memory_allocated": of a GPU
-- memory_allocated, max_memory_allocated, memory_reserved (bytes); of the CPU cpu_percent (of this
-- process; 100 is one core), cpu_rss_bytes (its memory), cpu_vm_percent and cpu_swap_percent (in
-- use on the machine).
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local proc_sizes = require "ltrain.core.proc_sizes"

local DeviceStatsMonitor = Callback:extend("DeviceStatsMonitor")

DeviceStatsMonitor.all_ranks = false
DeviceStatsMonitor.keeps_epoch = true

local OPTIONS <const> = {
  cpu_stats = { type = "boolean",
    doc = "log CPU statistics; by default only if the CPU is the device" },
  filter_keys = { type = "table", doc = "log only statistics whose name contains one of these "
    .. "strings" },
}

DeviceStatsMonitor.__arguments = "| cpu_stats"

--- DeviceStatsMonitor{cpu_stats = true}
function DeviceStatsMonitor:init(options)
  local o = config.check(options, OPTIONS, "callbacks.DeviceStatsMonitor")
  self.cpu_stats, self.filter_keys = o.cpu_stats, o.filter_keys
end

function DeviceStatsMonitor:setup(trainer, _, stage)
  if stage == "fit" and #trainer.loggers == 0 and not trainer.fast_dev_run then
    errors.blame("DeviceStatsMonitor: there is no logger: the Trainer was made with "
      .. "logger = false")
  end
end

-- Seconds of all processors that this process has used; nil where that is not known.
local function time_used()
  local fields = (c.io.read_file "/proc/self/stat" or ""):match "%) (.*)"
  if not fields then return nil end
  local numbers = {}
  for field in fields:gmatch "%S+" do numbers[#numbers + 1] = tonumber(field) or 0 end
  return (numbers[12] + numbers[13]) / 100 -- user and system, in ticks of 1/100 s
end

local function percent(free, all)
  return free and all and all > 0 and 100 * (1 - free / all) or nil
end

-- Those of the CPU. The load is since the last time.
local function add_cpu(self, stats)
  local used, now = time_used(), c.runtime.clock()
  if used and self._used and now > self._clock then
    stats.cpu_percent = 100 * (used - self._used) / (now - self._clock)
  end
  self._used, self._clock = used, now
  local machine = proc_sizes "/proc/meminfo"
  stats.cpu_rss_bytes = proc_sizes("/proc/self/status").VmRSS
  stats.cpu_vm_percent = percent(machine.MemAvailable, machine.MemTotal)
  stats.cpu_swap_percent = percent(machine.SwapFree, machine.SwapTotal)
end

local function add_device(stats, device)
  local memory = c.runtime.memory(device)
  stats.memory_allocated, stats.max_memory_allocated = memory.live_bytes, memory.peak_bytes
  stats.memory_reserved = memory.live_bytes + memory.cached_bytes
end

local function wanted(self, name)
  for _, part in ipairs(self.filter_keys or { "" }) do
    if name:find(part, 1, true) then return true end
  end
  return false
end

local function log(self, trainer, hook, step)
  local stats, row, device = {}, {}, trainer.strategy.root_device
  if device ~= "cpu" then add_device(stats, device) end
  if self.cpu_stats or self.cpu_stats == nil and device == "cpu" then add_cpu(self, stats) end
  for name, value in pairs(stats) do
    if wanted(self, name) then row[("DeviceStatsMonitor.%s/%s"):format(hook, name)] = value end
  end
  if next(row) ~= nil then trainer:log_to_loggers(row, step) end
end

for _, stage in ipairs { "train", "validation", "test" } do
  for _, moment in ipairs { "start", "end" } do
    local hook = ("on_%s_batch_%s"):format(stage, moment)
    DeviceStatsMonitor[hook] = function(self, trainer)
      if trainer.sanity_checking or stage == "train" and not trainer:logs_this_step() then
        return
      end
      log(self, trainer, hook, trainer.progress.stepped)
    end
  end
end

return DeviceStatsMonitor
