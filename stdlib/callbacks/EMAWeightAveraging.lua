--- stdlib/callbacks/EMAWeightAveraging.lua: keeps an exponential moving average of the weights,
--- which is used for validation and saved.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(1, 1)
--   function net:training_step(x) return (self(x) - 2 * x):square():mean() end
--   function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
--   local ema = lt.callbacks.EMAWeightAveraging{decay = 0.9}
--   local trainer = lt.Trainer{max_epochs = 30, callbacks = {ema}}
--   trainer:fit(net, {lt.ones(4, 1), -lt.ones(4, 1)})
--   print(("%.1f"):format(net.weight:item()))
--   -- prints: 2.0
local AveragedModel = require "ltrain.optim.AveragedModel"
local WeightAveraging = require "ltrain.callbacks.WeightAveraging"

local EMAWeightAveraging = WeightAveraging:extend("EMAWeightAveraging")

EMAWeightAveraging.options = {
  decay = { type = "number", default = 0.999, min = 0, max = 1,
    doc = "weight of the previous average in the new one" },
  update_every_n_steps = { type = "integer", default = 1, min = 1,
    doc = "optimizer steps between updates" },
  update_starting_at_step = { type = "integer", min = 0, doc = "no update before this step" },
  update_starting_at_epoch = { type = "integer", min = 0,
    doc = "also update after each epoch, starting with this one" },
  device = WeightAveraging.options.device, use_buffers = WeightAveraging.options.use_buffers,
}

EMAWeightAveraging.__arguments = "| device use_buffers decay update_every_n_steps "
  .. "update_starting_at_step update_starting_at_epoch"

--- EMAWeightAveraging{decay = 0.999}
function EMAWeightAveraging:init(options) WeightAveraging.init(self, options) end

--- Whether to update the average after a step, or after an epoch.
function EMAWeightAveraging:should_update(step, epoch)
  if step then
    return step % self.update_every_n_steps == 0 and step >= (self.update_starting_at_step or 0)
  end
  return self.update_starting_at_epoch ~= nil and epoch >= self.update_starting_at_epoch
end

--- Creates the average of a module.
function EMAWeightAveraging:make_average(module)
  return AveragedModel(module, { decay = self.decay, use_buffers = self.use_buffers,
    device = self.device })
end

return EMAWeightAveraging
