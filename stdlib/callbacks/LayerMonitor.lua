--- stdlib/callbacks/LayerMonitor.lua: records statistics of each parameter and its gradient, for
--- the dashboard.
--
-- Every `every_n_steps` steps it writes a line to layers.jsonl in the folder of the run: mean, std,
-- min, max and norm of the finite elements of weights, and of gradients before clipping, and the
-- number of elements that are not finite; every tenth line also has histograms.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local complete_lines = require "ltrain.core.complete_lines"
local config = require "ltrain.core.config"
local histogram = require "ltrain.core.histogram"

local LayerMonitor = Callback:extend("LayerMonitor")
LayerMonitor.reads_whole = "gradients" -- strategies that divide them refuse it

LayerMonitor.all_ranks = false
LayerMonitor.keeps_epoch = true

local FILE <const> = "layers.jsonl"
local BINS <const> = 30
local OPTIONS <const> = {
  every_n_steps = { type = "integer", default = 50, min = 1,
    doc = "optimizer steps between lines" },
  histograms_every = { type = "integer", default = 10, min = 0,
    doc = "lines between histograms; 0: no histograms" },
}

--- LayerMonitor{every_n_steps = 20}
function LayerMonitor:init(options)
  local o = config.check(options, OPTIONS, "callbacks.LayerMonitor")
  self.every_n_steps, self.histograms_every = o.every_n_steps, o.histograms_every
  self.lines = 0
end

-- Where a file cannot be read or written: a warning, and nothing more is recorded.
local function done(self, trainer, result, message)
  if result then return result end
  trainer:warn("LayerMonitor: " .. message)
  self.path = nil
end

-- Lines of steps that a resumed run makes again go.
local function cut(self, trainer)
  if not c.io.kind(self.path) then return end
  local text = done(self, trainer, c.io.read_file(self.path))
  if not text then return end
  local kept = {}
  for line in complete_lines(text) do
    local at = tonumber(line:match '"step":(%d+)}$')
    if at and at < trainer.global_step then kept[#kept + 1] = line .. "\n" end
  end
  done(self, trainer, c.io.write_file(self.path, table.concat(kept)))
end

function LayerMonitor:on_train_start(trainer)
  self.path = trainer.log_dir and not trainer.fast_dev_run and trainer.log_dir .. "/" .. FILE
  if self.path then cut(self, trainer) end
end

local function statistics(values, with_histogram)
  local h = histogram(values, BINS)
  local nonfinite = values:numel() - (h and h.num or 0)
  if not h then return { nonfinite = nonfinite } end
  local mean = h.sum / h.num
  local square = h.sum_squares / h.num
  return { mean = mean, std = math.sqrt(math.max(square - mean * mean, 0)), min = h.min,
    max = h.max, norm = math.sqrt(h.sum_squares), nonfinite = nonfinite,
    edges = with_histogram and h.edges or nil, counts = with_histogram and h.counts or nil }
end

-- Once a step, where there are several optimizers.
local function is_due(self, trainer)
  local step = trainer.global_step
  if not self.path or step % self.every_n_steps ~= 0 or self.seen == step then return false end
  self.seen = step
  return true
end

function LayerMonitor:on_before_optimizer_step(trainer, module)
  if not is_due(self, trainer) then return end
  local _ <close> = c.no_grad()
  local every, layers = self.histograms_every, {}
  local with = every > 0 and self.lines % every == 0
  self.lines = self.lines + 1
  for name, parameter in module:named_parameters() do
    local shape = parameter.shape
    layers[#layers + 1] = { name = name, shape = #shape > 0 and shape or nil,
      weight = statistics(parameter, with),
      grad = parameter.grad and statistics(parameter.grad, with) or nil }
  end
  local line = c.io.json_encode({ epoch = trainer.current_epoch, layers = layers,
    step = trainer.global_step }, { plain = true })
  done(self, trainer, c.io.append_file(self.path, line .. "\n"))
end

return LayerMonitor
