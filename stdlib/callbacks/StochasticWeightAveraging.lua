--- stdlib/callbacks/StochasticWeightAveraging.lua: stochastic weight averaging (SWA, Izmailov et
-- al. 2018): the mean of the weights of the last epochs, trained with another learning rate.
--
-- From epoch `swa_epoch_start` on the learning rate is annealed to `swa_lrs` and stays there,
-- overriding schedulers, and the weights after each epoch are added to the mean, which is used for
-- validation and saved. After the last epoch the batch-norm statistics are recomputed over the
-- training data with forward passes; before, they are averages of statistics.
local WeightAveraging = require "ltrain.callbacks.WeightAveraging"
local AveragedModel = require "ltrain.optim.AveragedModel"
local averaging = require "ltrain.optim.averaging"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local StochasticWeightAveraging = WeightAveraging:extend("StochasticWeightAveraging")

local function wrong_rates(value)
  for _, rate in ipairs(type(value) == "table" and value or { value }) do
    if type(rate) ~= "number" or rate <= 0 then
      return "must be above 0: got " .. errors.show(rate)
    end
  end
end

local function wrong_start(value)
  if math.type(value) == "float" and value >= 0 and value <= 1 then return nil end
  if math.type(value) == "integer" and value >= 0 then return nil end
  return "must be an epoch (from 0) or a fraction from 0.0 to 1.0: got " .. errors.show(value)
end

StochasticWeightAveraging.options = {
  swa_lrs = { type = "number|table", required = true, check = wrong_rates,
    doc = "the learning rate, or one for each parameter group" },
  swa_epoch_start = { type = "number", default = 0.8, check = wrong_start,
    doc = "the first averaged epoch, or that fraction of max_epochs" },
  annealing_epochs = { type = "integer", default = 10, min = 0,
    doc = "number of epochs of the annealing" },
  annealing_strategy = { type = "string", default = "cos", choices = { "cos", "linear" },
    doc = "shape of the annealing" },
  avg_fn = { type = "function",
    doc = "instead of the mean: function(average, current, n) that returns the new average" },
  device = WeightAveraging.options.device,
}

StochasticWeightAveraging.__arguments = "| swa_lrs swa_epoch_start annealing_epochs "
  .. "annealing_strategy avg_fn device"

--- StochasticWeightAveraging{swa_lrs = 0.01}
function StochasticWeightAveraging:init(options)
  WeightAveraging.init(self, options)
  self._rates = {} -- those at which annealing begins
end

--- Creates the mean of a module.
function StochasticWeightAveraging:make_average(module)
  return AveragedModel(module, { avg_fn = self.avg_fn, use_buffers = true, device = self.device })
end

function StochasticWeightAveraging:on_fit_start(trainer, module)
  if #trainer.optimizers ~= 1 then
    errors.blame("callbacks.StochasticWeightAveraging: there must be one optimizer: got %d",
      #trainer.optimizers)
  end
  local groups = #trainer.optimizers[1].param_groups
  if type(self.swa_lrs) == "table" and #self.swa_lrs ~= groups then
    errors.blame("callbacks.StochasticWeightAveraging: %d learning rates for %d groups of "
      .. "parameters", #self.swa_lrs, groups)
  end
  self.first_epoch = self.swa_epoch_start
  if math.type(self.first_epoch) == "float" then
    if trainer.max_epochs == -1 then
      errors.blame("callbacks.StochasticWeightAveraging: swa_epoch_start = %g needs max_epochs",
        self.first_epoch)
    end
    self.first_epoch = math.floor(trainer.max_epochs * self.first_epoch)
  end
  WeightAveraging.on_fit_start(self, trainer, module)
end

--- Whether to update the mean after an epoch.
function StochasticWeightAveraging:should_update(step, epoch) -- luacheck: ignore 212
  return epoch ~= nil and epoch >= self.first_epoch
end

-- How much of the way to the last rate is done, `epochs` after the first.
local function done(self, epochs)
  local share = self.annealing_epochs == 0 and 1 or math.min(1, epochs / self.annealing_epochs)
  return self.annealing_strategy == "linear" and share or (1 - math.cos(math.pi * share)) / 2
end

-- The learning rates of an epoch; schedulers rest.
local function set_rates(self, trainer)
  local share = done(self, trainer.current_epoch - self.first_epoch + 1)
  for i, group in ipairs(trainer.optimizers[1].param_groups) do
    local last = type(self.swa_lrs) == "table" and self.swa_lrs[i] or self.swa_lrs
    self._rates[i] = self._rates[i] or group.lr
    group.lr = self._rates[i] + (last - self._rates[i]) * share
  end
  for _, schedule in ipairs(trainer.lr_scheduler_configs) do
    schedule.frequency = math.maxinteger
  end
end

function StochasticWeightAveraging:on_train_start(trainer)
  -- A run that resumes within an epoch has its rates, but schedulers that would continue.
  if trainer.current_epoch >= self.first_epoch and trainer.progress.in_epoch then
    set_rates(self, trainer)
  end
end

function StochasticWeightAveraging:on_train_epoch_start(trainer)
  if trainer.current_epoch >= self.first_epoch then set_rates(self, trainer) end
end

-- Statistics of batch norm for the mean, of all training data, on every rank.
local function update_norms(self, trainer)
  local loader = trainer.train_dataloader
  if not class.has_method(loader, "batches") then return end
  local random = c.runtime.rng_state()
  averaging.update_bn(loader, self.average.module)
  c.runtime.rng_restore(random)
end

function StochasticWeightAveraging:on_train_epoch_end(trainer, module)
  WeightAveraging.on_train_epoch_end(self, trainer, module)
  local ends = trainer.is_last_batch and trainer.current_epoch == trainer.max_epochs - 1
  if ends and self.average then
    update_norms(self, trainer)
  end
end

function StochasticWeightAveraging:state_dict()
  local saved = WeightAveraging.state_dict(self)
  saved.rates = self._rates
  return saved
end

function StochasticWeightAveraging:load_state_dict(saved)
  schema.check(saved, { rates = { list = "number" } }, "StochasticWeightAveraging")
  WeightAveraging.load_state_dict(self, saved)
  self._rates = saved.rates
end

return StochasticWeightAveraging
