--- stdlib/profiler/Profiler.lua: trainer.profiler: times parts of a run that the script names.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(2, 1)
--   function net:training_step(x)
--     local y = self.trainer.profiler:profile("augment", function() return x + 0.1 end)
--     return self(y):square():mean()
--   end
--   function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
--   local trainer = lt.Trainer{max_epochs = 1, profiler = "simple", logger = false,
--     enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}
--   trainer:fit(net, {lt.ones(4, 2), lt.ones(4, 2)})
--   print(trainer.profiler:summary():match "augment +(%d+)")
--   -- prints: 2
--
-- They are rows of the table and of the trace beside the hooks, and ranges of NVIDIA's profilers
-- (lt.cuda.nvtx.hook_ranges). Without one of these they cost nothing.
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local profiler_ranges = require "ltrain.core.profiler_ranges"

local Profiler = class.extend(nil, "Profiler")

function Profiler:init() self._open, self._text = {}, "" end

local function check(name, fn)
  return config.argument(name, "string", "profiler:" .. fn, "the name")
end

local NOTHING <const> = setmetatable({}, { __close = function() end })

--- Times fn(), and returns what it returns; without fn it returns what is closed at the end:
--- `local _ <close> = self.trainer.profiler:profile("augment")`.
function Profiler:profile(name, fn) -- luacheck: ignore 212
  check(name, "profile")
  if fn == nil then return profiler_ranges.open and profiler_ranges.open(name) or NOTHING end
  config.argument(fn, "function", "profiler:profile", "the function")
  local _ <close> = profiler_ranges.open and profiler_ranges.open(name) or nil
  local function results(...) return ... end
  return results(fn())
end

--- A part begins, which `stop` of the name ends.
function Profiler:start(name)
  if self._open[check(name, "start")] ~= nil then
    errors.blame("profiler:start: '%s' has started already", name)
  end
  self._open[name] = profiler_ranges.open and profiler_ranges.open(name) or NOTHING
end

--- It ends.
function Profiler:stop(name)
  local range <close> = self._open[check(name, "stop")]
  if range == nil then errors.blame("profiler:stop: '%s' was not started", name) end
  self._open[name] = nil
end

--- Returns the table of the last loop of the Trainer with `profiler`; "" without one.
function Profiler:summary() return self._text end

--- Prints it.
function Profiler:describe() console.write(self._text) end

-- A loop begins, or has ended with this table: what was not stopped is forgotten.
function Profiler:_reset(text) self._open, self._text = {}, text or self._text end

return Profiler
