--- stdlib/callbacks/WeightAveraging.lua: keeps an average of the weights, which is used for
--- validation and saved.
--
-- Checkpoints contain both: `state_dict` the averaged weights, which validate, test, predict and
-- other programs load, and `current_model_state` the weights from which a fit resumes. After
-- training the module has the averaged weights. EMAWeightAveraging and StochasticWeightAveraging
-- are subclasses; a custom subclass overrides `should_update`, and `make_average` for an average
-- other than the mean.
local AveragedModel = require "ltrain.optim.AveragedModel"
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local schema = require "ltrain.core.schema"

local WeightAveraging = Callback:extend("WeightAveraging")

--- It runs on all ranks, whose averages are equal.
WeightAveraging.all_ranks = true
WeightAveraging.keeps_epoch = true
--- Its averages have the shapes of the parameters: strategies that cut these refuse it.
WeightAveraging.averages_parameters = true

WeightAveraging.options = {
  device = { type = "string", doc = "device of the averages; by default the module's" },
  use_buffers = { type = "boolean", default = true,
    doc = "average buffers too, such as statistics of batch norm" },
}

WeightAveraging.__arguments = "| device use_buffers"

--- WeightAveraging{use_buffers = true}
function WeightAveraging:init(options)
  local o = config.check(options, self.options, "callbacks." .. getmetatable(self).__name)
  for name, value in next, o do self[name] = value end
  self.latest_update_step, self.latest_update_epoch = 0, -1
  self._swapped = false -- whether the module has the averages, and they the trained weights
end

--- To be overridden: whether to update the average after optimizer step `step` (from 0; nil at the
--- end of an epoch) or after epoch `epoch` (from 0; nil after a step). The base class updates after
--- each step.
function WeightAveraging:should_update(step, epoch) -- luacheck: ignore 212
  return step ~= nil
end

--- To be overridden: returns the optim.AveragedModel of a module.
function WeightAveraging:make_average(module)
  return AveragedModel(module, { use_buffers = self.use_buffers, device = self.device })
end

-- Whether there are averages of at least one update.
local function has_begun(self)
  return self.average ~= nil and self.average.n_averaged:item() > 0
end

-- Until it is closed the module's weights are whole on each rank (nil: they always are).
local function whole(module)
  return module.trainer and module.trainer.strategy:gather_parameters()
end

-- Gives the module the averages (true) or the trained weights (false).
local function show(self, module, averages)
  if not has_begun(self) or self._swapped == averages then return end
  local _ <close> = whole(module)
  self.average:swap(module)
  self._swapped = averages
end

--- Updates the average with the module's weights.
function WeightAveraging:update(module)
  local _ <close> = whole(module)
  self.average = self.average or self:make_average(module)
  self.average:update_parameters(module)
end

local function is_last(trainer, optimizer)
  return rawequal(trainer.optimizers[#trainer.optimizers], optimizer)
end

function WeightAveraging:on_fit_start(_, module)
  show(self, module, false)
  local parameter = module:parameters()[1]
  if self.average and not self.device and parameter then self.average:to(parameter.device) end
end

-- With several optimizers the last of their list ends a step.
function WeightAveraging:on_after_optimizer_step(trainer, module, optimizer)
  local step = trainer.global_step - 1
  if is_last(trainer, optimizer) and self:should_update(step, nil) then
    self:update(module)
    self.latest_update_step = trainer.global_step
  end
end

-- The epoch's weights, once; not those of an epoch that was cut short and is to be resumed.
local function end_epoch(self, trainer, module)
  local epoch = trainer.current_epoch
  if not trainer.is_last_batch or epoch <= self.latest_update_epoch
    or not self:should_update(nil, epoch) then
    return
  end
  self:update(module)
  self.latest_update_epoch = epoch
end

function WeightAveraging:on_validation_start(trainer, module)
  local running = trainer.running
  if running.fn ~= "fit" then return end
  if not trainer.sanity_checking then end_epoch(self, trainer, module) end
  show(self, module, true)
end

function WeightAveraging:on_validation_end(trainer, module)
  if trainer.running.fn == "fit" then show(self, module, false) end
end

function WeightAveraging:on_train_epoch_end(trainer, module)
  end_epoch(self, trainer, module)
end

function WeightAveraging:on_train_end(_, module) show(self, module, true) end

-- Where ranks have parts of the weights, those of a run that failed are lost.
function WeightAveraging:on_exception(trainer, module)
  if trainer.strategy:is_replicated "parameter" then show(self, module, false) end
end

function WeightAveraging:state_dict()
  return {
    n_averaged = self.average and self.average.n_averaged:item() or 0,
    latest_update_step = self.latest_update_step, latest_update_epoch = self.latest_update_epoch,
  }
end

function WeightAveraging:load_state_dict(saved)
  schema.check(saved, { n_averaged = "count", latest_update_step = "count",
    latest_update_epoch = "number" }, "WeightAveraging")
  self.latest_update_step = saved.latest_update_step
  self.latest_update_epoch = saved.latest_update_epoch
  if self.average then self.average.n_averaged:fill_(saved.n_averaged) end
end

function WeightAveraging:on_save_checkpoint(_, _, checkpoint)
  if not has_begun(self) then return end
  local trained, averages = checkpoint.state_dict, self.average.module:state_dict()
  if self._swapped then trained, averages = averages, trained end
  local resumes = checkpoint.callbacks ~= nil
  checkpoint.state_dict = averages
  checkpoint.current_model_state = resumes and trained or nil
end

WeightAveraging.reads_state_dict = false -- its on_load_checkpoint leaves tensors unread

function WeightAveraging:on_load_checkpoint(trainer, module, checkpoint)
  self._swapped = false
  if trainer.running.fn ~= "fit" or not checkpoint.current_model_state then return end
  do
    local _ <close> = whole(module)
    self.average = self:make_average(module) -- of the averages, which were loaded
  end
  trainer.strategy:load_module_state(module, checkpoint.current_model_state)
end

return WeightAveraging
