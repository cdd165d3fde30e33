-- stdlib/optim/averaging.lua: helpers of AveragedModel: the function of an exponential moving
-- average, and new batch-norm statistics for averaged weights (update_bn).

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local averaging = {}

--- The `avg_fn` of an exponential moving average: average * decay + current * (1 - decay).
function averaging.get_ema_avg_fn(decay)
  decay = config.argument(decay == nil and 0.999 or decay, "number", "optim.get_ema_avg_fn",
    "decay", { min = 0, max = 1 })
  return function(average, current, _) return average * decay + current * (1 - decay) end
end

-- Layers that keep running statistics of batches.
local function norms_of(model)
  local list = {}
  for _, module in ipairs(model:modules()) do
    if rawget(module, "running_mean") and rawget(module, "num_batches_tracked") then
      list[#list + 1] = module
    end
  end
  return list
end

local function reset(norm)
  local _ <close> = c.allow_update()
  norm.running_mean:fill_(0)
  norm.running_var:fill_(1)
  norm.num_batches_tracked:fill_(0)
end

--- Recomputes the running statistics of all batch-norm layers of `model`: means over the batches of
--- `loader`, a DataLoader, whose first field is the input.
function averaging.update_bn(loader, model)
  if not walk.is_module(model) then
    errors.blame("optim.update_bn: the second argument must be a module: got %s",
      errors.show(model))
  end
  local norms, momenta, training = norms_of(model), {}, model.training
  if #norms == 0 then return end
  local parameters = model:parameters()
  local device = parameters[1] and parameters[1].device or "cpu"
  for i, norm in ipairs(norms) do
    reset(norm)
    momenta[i], norm.momentum = norm.momentum, false
  end
  model:train()
  local _ <close> = c.no_grad()
  for batch in loader:batches() do
    local x = c.is_tensor(batch) and batch or batch[1]
    model(x:to(device))
  end
  for i, norm in ipairs(norms) do norm.momentum = momenta[i] end
  model:train(training)
end

return averaging
