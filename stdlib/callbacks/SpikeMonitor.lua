--- stdlib/callbacks/SpikeMonitor.lua: records the samples of batches whose loss spikes, for the
--- dashboard, which shows them beside the curve.
--
-- A loss spikes if it is not finite, or exceeds the moving average of the loss by `threshold` times
-- the average deviation. training_step is then run with each sample of the batch alone, in
-- evaluation mode and without gradients, to find the samples with the highest losses; what it logs
-- or assigns to `self` is discarded, and the random state is restored, so the fit is not affected.
local Callback = require "ltrain.core.Callback"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local walk = require "ltrain.core.walk"

local SpikeMonitor = Callback:extend("SpikeMonitor")

SpikeMonitor.all_ranks = false
SpikeMonitor.keeps_epoch = true

local TEXT <const> = 400 -- bytes of a sample's text
local DECAY <const> = 0.95 -- of what is usual, with each loss
local OPTIONS <const> = {
  metric = { type = "string", default = "train_loss",
    doc = "the metric whose curve shows the spikes" },
  threshold = { type = "number", default = 6, min = 1,
    doc = "average deviations above the average loss from which a loss is a spike" },
  warm_up = { type = "integer", default = 20, min = 1,
    doc = "number of losses before the first possible spike" },
  most = { type = "integer", default = 20, min = 1, doc = "maximum number of recorded batches "
    .. "per run" },
  samples = { type = "integer", default = 8, min = 1,
    doc = "samples recorded per batch: those with the highest losses" },
}

--- SpikeMonitor{metric = "train_loss"}
function SpikeMonitor:init(options)
  local o = config.check(options, OPTIONS, "callbacks.SpikeMonitor")
  for name, value in next, o do self[name] = value end
  self.count, self.seen = 0, 0
end

-- Whether a loss jumps; what is usual follows those that do not.
local function jumps(self, loss)
  if loss ~= loss or loss == math.huge or loss == -math.huge then return self.seen > 0 end
  local distance = self.usual and math.abs(loss - self.usual) or 0
  local far = self.seen >= self.warm_up and loss > self.usual
    and distance > self.threshold * math.max(self.spread, 1e-12)
  self.seen = self.seen + 1
  if far then -- one that stays becomes usual, in time
    self.spread = self.spread + (1 - DECAY) * (math.min(distance, 2 * self.spread) - self.spread)
    self.usual = self.usual + (1 - DECAY) * math.min(distance, 2 * self.spread)
    return true
  end
  local weight = self.seen < 1 / (1 - DECAY) and 1 / self.seen or 1 - DECAY
  self.usual = (self.usual or loss) + weight * (loss - (self.usual or loss))
  self.spread = (self.spread or 0) + weight * (distance - (self.spread or 0))
  return false
end

-- f of each tensor of a batch, which keeps its form.
local function map(value, f)
  if c.is_tensor(value) then return f(value) end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return value end
  local mapped = {}
  for key, one in next, value do mapped[key] = map(one, f) end
  return mapped
end

-- How many samples a batch has; 0 where that is not known.
local function size_of(batch)
  local size
  map(batch, function(tensor)
    local first = tensor.ndim > 0 and tensor.shape[1] or 0
    size = size == nil and first or size == first and size or 0
  end)
  return size or 0
end

-- A module in whose place training_step runs: what is set on it or logged by it is lost.
local function stand_in(module)
  local function nothing() end
  local self = { log = nothing, log_dict = nothing, log_image = nothing, log_text = nothing,
    log_histogram = nothing, print = nothing }
  return setmetatable(self, { __index = module, __call = function(_, ...)
    local result = module(...)
    return result
  end })
end

-- The loss of each sample alone, in order; nil where the step does not take one.
local function losses_of(module, batch, batch_idx, count)
  local modes, losses, random = {}, {}, c.runtime.rng_state()
  for _, entry in ipairs(walk.modules(module)) do modes[entry.module] = entry.module.training end
  module:eval()
  local _ <close> = c.no_grad()
  local ok = pcall(function()
    for i = 1, count do
      local one = map(batch, function(tensor) return tensor:narrow(1, i, 1) end)
      local result = module.training_step(stand_in(module), one, batch_idx)
      local loss = type(result) == "table" and result.loss or result
      losses[i] = c.is_tensor(loss) and loss:item() or loss
    end
  end)
  for one, mode in next, modes do rawset(one, "training", mode) end
  c.runtime.rng_restore(random)
  return ok and #losses == count and losses or nil
end

-- Its order: the highest first, and those that are not finite before.
local function sorted(losses, count)
  local list = {}
  for i = 1, count do list[i] = i end
  local function rank(i)
    local loss = losses and losses[i] or 0
    return loss ~= loss and math.huge or loss
  end
  table.sort(list, function(a, b)
    if rank(a) ~= rank(b) then return rank(a) > rank(b) end
    return a < b
  end)
  return list
end

local function text_of(sample)
  local parts = {}
  map(sample, function(tensor)
    parts[#parts + 1] = tostring(tensor:select(1, 1)):sub(1, TEXT)
  end)
  return table.concat(parts, "\n"):sub(1, TEXT)
end

-- The picture in a sample, from its lowest to its highest value, as u8 [C, H, W]; nil without one.
local function image_of(sample)
  local found
  map(sample, function(tensor)
    local shape = tensor.shape
    if found or #shape ~= 4 or shape[2] ~= 1 and shape[2] ~= 3 or shape[3] < 2 or shape[4] < 2 then
      return
    end
    local x = tensor:select(1, 1):detach():to("cpu"):to "f32"
    local low, high = x:min():item(), x:max():item()
    if not (high > low and high - low < math.huge) then return end
    found = ((x - low) * (255 / (high - low))):round():to "u8"
  end)
  return found
end

local function keep(self, trainer, module, batch, batch_idx, loss)
  local count = size_of(batch)
  local losses = count > 0 and losses_of(module, batch, batch_idx, count)
  local entry, images = { value = loss, usual = self.usual, samples = {} }, {}
  local order = sorted(losses, count)
  for k = 1, math.min(self.samples, count) do
    local i = order[k]
    local one = map(batch, function(tensor) return tensor:narrow(1, i, 1) end)
    entry.samples[k] = { index = i, loss = losses and losses[i] or nil, text = text_of(one) }
    images[k] = image_of(one)
  end
  if #entry.samples == 0 then return end
  for _, logger in ipairs(trainer.loggers) do
    if logger.log_samples then
      logger:log_samples(self.metric, entry, #images == #entry.samples and images or nil,
        trainer.progress.stepped)
    end
  end
end

function SpikeMonitor:on_train_batch_start(_, _, batch, batch_idx)
  self.batch, self.batch_idx = batch, batch_idx
end

-- A loss that is not finite ends the fit, before its batch does.
function SpikeMonitor:on_exception(trainer, module, err)
  local batch = self.batch
  self.batch = nil
  if batch and self.count < self.most and tostring(err):find "the loss is %-?%a" then
    self.count = self.count + 1
    keep(self, trainer, module, batch, self.batch_idx, 0 / 0)
  end
end

function SpikeMonitor:on_train_batch_end(trainer, module, outputs, batch, batch_idx)
  self.batch = nil
  if self.count >= self.most or trainer.fast_dev_run then return end
  local loss = type(outputs) == "table" and outputs.loss or outputs
  if not c.is_tensor(loss) then return end
  -- Reading a value waits for a device: there only those that are logged are checked.
  if loss.device ~= "cpu" and not trainer:logs_this_step() then return end
  local value = loss:item()
  if not jumps(self, value) then return end
  self.count = self.count + 1
  keep(self, trainer, module, batch, batch_idx, value)
end

return SpikeMonitor
