-- stdlib/nn/module_trainer.lua: the methods of a Module that its Trainer provides: `log`,
-- `optimizers`, `manual_backward`, ...
--
-- `defaults` are methods that a module may replace, `methods` those that it calls, `properties`
-- fields that are computed. Hooks (`on_...`, `configure_...`) have no default: an absent one costs
-- nothing.

local Precision = require "ltrain.core.Precision"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local walk = require "ltrain.core.walk"

local module_trainer = {}

-- The trainer, or an error that says what was called without one.
local function trainer_of(module, what)
  if not walk.is_module(module) then
    errors.blame("%s: call it with a colon, self:%s(...): got %s instead of the module", what,
      what, errors.show(module))
  end
  local trainer = rawget(module, "trainer")
  if not trainer then
    errors.blame("%s: the module is not attached to a trainer: %s", what,
      walk.class_name(module))
  end
  return trainer
end

local function check_optimizer(value, what)
  if type(value) == "table" and type(value.param_groups) == "table" then return end
  errors.blame("%s: an optimizer is needed: got %s", what, errors.show(value))
end

-- Replaceable.

local defaults = {}
module_trainer.defaults = defaults

--- Returns the prediction for a batch; by default forward(batch).
function defaults.predict_step(self, batch)
  local outputs = self(batch)
  return outputs
end

--- Runs the backward pass.
function defaults.backward(_, loss, ...)
  loss:backward(...)
end

--- Takes an optimizer step. The closure runs training_step and backward and returns the loss; it
--- must be called, and may be called again with other weights.
function defaults.optimizer_step(_, _, _, optimizer, closure)
  return optimizer:step(closure)
end

function defaults.optimizer_zero_grad(_, _, _, optimizer)
  optimizer:zero_grad()
end

function defaults.lr_scheduler_step(_, scheduler, metric)
  scheduler:step(metric)
end

function defaults.configure_gradient_clipping(self, optimizer, clip_val, algorithm)
  self:clip_gradients(optimizer, clip_val, algorithm)
end

local CLIP <const> = {
  gradient_clip_val = { type = "number", min = 0, doc = "the largest norm, or value" },
  gradient_clip_algorithm = { type = "string", choices = { "norm", "value" } },
}

--- Clips the gradients of an optimizer's parameters: by their total norm ("norm") or each element
--- ("value"): `self:clip_gradients(optimizer, 0.5, "norm")`, or by name `{gradient_clip_val = 0.5,
--- gradient_clip_algorithm = "norm"}`.
function defaults.clip_gradients(self, optimizer, clip_val, algorithm)
  if type(clip_val) == "table" then
    local o = config.check(clip_val, CLIP, "clip_gradients")
    clip_val, algorithm = o.gradient_clip_val, o.gradient_clip_algorithm
  end
  if clip_val == nil or clip_val == 0 then return end
  check_optimizer(optimizer, "clip_gradients")
  config.argument(clip_val, "number", "clip_gradients", "gradient_clip_val", { min = 0 })
  local trainer = rawget(self, "trainer")
  if trainer and not self.automatic_optimization then
    trainer:sync_gradients(optimizer)
    trainer:unscale_gradients(optimizer)
  end
  local precision = trainer and trainer.precision_plugin or Precision
  precision:clip_gradients(optimizer, clip_val, algorithm or "norm")
end

-- To be called.

local methods = {}
module_trainer.methods = methods

local ALL_GATHER <const> = {
  cat = { type = "boolean", default = false, doc = "concatenate along dim 1; sizes may differ" },
  sync_grads = { type = "boolean", default = false, doc = "whether it is differentiable" },
}

--- Logs a number, a tensor of one element or a Metric under a name (options: see the guide).
function methods.log(self, name, value, options)
  trainer_of(self, "log"):_log(name, value, options)
end

--- Calls `log` for each name and value of a table, in alphabetical order.
function methods.log_dict(self, values, options)
  trainer_of(self, "log_dict"):_log_dict(values, options)
end

--- Logs an image, a tensor [C, H, W] or [H, W] of u8 or of floats from 0 to 1, or several, a tensor
--- [N, C, H, W] or a list. Options: `step`, by default the current step.
function methods.log_image(self, name, image, options)
  trainer_of(self, "log_image"):_log_image(name, image, options)
end

--- Logs a text. Options: `step`.
function methods.log_text(self, name, text, options)
  trainer_of(self, "log_text"):_log_text(name, text, options)
end

--- Logs a histogram of the elements of a tensor; those that are not finite are ignored.
--- Options: `bins` (30), `step`.
function methods.log_histogram(self, name, values, options)
  trainer_of(self, "log_histogram"):_log_histogram(name, values, options)
end

--- Prints on rank 0 only, above the progress bar.
function methods.print(self, ...)
  local trainer = rawget(self, "trainer")
  if trainer then trainer:print(...) else print(...) end
end

--- Gathers a value from all ranks: a tensor [...] becomes [ranks, ...], a number becomes a tensor
--- [ranks], a nested table a table of these. `cat = true` concatenates tensors along dim 1, whose
--- sizes may then differ. It is differentiable only with `sync_grads = true`, as in Lightning
--- (lt.dist.all_gather is by default). All ranks must call it.
function methods.all_gather(_, x, options)
  local gather_tree = require "ltrain.dist.gather_tree"
  return gather_tree(x, config.check(options, ALL_GATHER, "all_gather"))
end

local OPTIMIZERS <const> = { use_pl_optimizer = { type = "boolean" } }

--- Returns the optimizer, or the list if there are several. Lightning's option use_pl_optimizer has
--- no effect: optimizers are not wrapped.
function methods.optimizers(self, options)
  config.check(options, OPTIMIZERS, "optimizers")
  local list = trainer_of(self, "optimizers").optimizers
  return #list == 1 and list[1] or list
end

--- Returns the scheduler, or the list if there are several; nil if there is none.
function methods.lr_schedulers(self)
  local list = {}
  for i, entry in ipairs(trainer_of(self, "lr_schedulers").lr_scheduler_configs) do
    list[i] = entry.scheduler
  end
  return #list > 1 and list or list[1]
end

--- In manual optimization: runs `backward` on the loss, with its hooks.
function methods.manual_backward(self, loss, ...)
  if self.automatic_optimization then
    errors.blame("manual_backward: set self.automatic_optimization = false in init first")
  end
  trainer_of(self, "manual_backward"):manual_backward(loss, ...)
end

--- In manual optimization with several optimizers: disables the gradients of parameters that are
--- only in other optimizers, until `untoggle_optimizer`.
function methods.toggle_optimizer(self, optimizer)
  check_optimizer(optimizer, "toggle_optimizer")
  if rawget(self, "_toggled") then self:untoggle_optimizer() end
  local mine, toggled = {}, {}
  for _, parameter in ipairs(parameters_of(optimizer)) do mine[parameter] = true end
  for _, other in ipairs(trainer_of(self, "toggle_optimizer").optimizers) do
    for _, parameter in ipairs(parameters_of(other)) do
      if not mine[parameter] and parameter.requires_grad then
        parameter.requires_grad = false
        toggled[#toggled + 1] = parameter
      end
    end
  end
  rawset(self, "_toggled", toggled)
end

--- In manual optimization: reduces the gradients of an optimizer (nil: of all) over the ranks now.
--- Otherwise its `step` or `clip_gradients` does this, once per step.
function methods.sync_gradients(self, optimizer)
  if self.automatic_optimization then
    errors.blame("sync_gradients: the loop does it: it is for self.automatic_optimization = false")
  end
  trainer_of(self, "sync_gradients"):sync_gradients(optimizer)
end

--- Undoes `toggle_optimizer`; the optimizer, the one passed to it, may be omitted.
---@param optimizer Optimizer|nil
function methods.untoggle_optimizer(self, optimizer)
  if optimizer ~= nil then check_optimizer(optimizer, "untoggle_optimizer") end
  for _, parameter in ipairs(rawget(self, "_toggled") or {}) do parameter.requires_grad = true end
  rawset(self, "_toggled", nil)
end

--- `local _ <close> = self:toggled_optimizer(optimizer)`: `toggle_optimizer` for this scope.
---@param optimizer Optimizer
function methods.toggled_optimizer(self, optimizer)
  self:toggle_optimizer(optimizer)
  return setmetatable({}, { __close = function() self:untoggle_optimizer(optimizer) end })
end

-- Computed fields.

-- What is at the end of the path that the last walk found; nil when it is not a tensor any more.
-- While func.functional_call runs it is none of the module's parameters, but on their device.
local function follow(module, way)
  local value = module
  for i = 1, #way do
    if type(value) ~= "table" then return nil end
    value = rawget(value, way[i])
  end
  return c.is_tensor(value) and value or nil
end

-- Steps ask for the device: the path is kept until a parameter is made, or is not there any more.
local function first_parameter(module)
  local known, made = rawget(module, "_first"), c.runtime.parameters_made()
  local parameter = known and known.made == made and follow(module, known.way)
  if parameter then return parameter end
  local item = walk.first_parameter(module)
  if not item then return nil end
  rawset(module, "_first", { made = made, way = walk.keys(item) })
  return item.value
end

local function from_trainer(name, without)
  return function(self)
    local trainer = rawget(self, "trainer")
    if trainer then return trainer[name] end
    return without
  end
end

module_trainer.properties = {
  device = function(self)
    local parameter = first_parameter(self)
    return parameter and parameter.device or "cpu"
  end,
  dtype = function(self)
    local parameter = first_parameter(self)
    return parameter and parameter.dtype or "f32"
  end,
  on_gpu = function(self) return self.device:find "^cuda" ~= nil end,
  current_epoch = from_trainer("current_epoch", 0),
  global_step = from_trainer("global_step", 0),
  global_rank = from_trainer("global_rank", 0),
  local_rank = from_trainer("local_rank", 0),
  logger = from_trainer "logger",
  loggers = from_trainer("loggers", {}),
  device_mesh = function(self)
    local trainer = rawget(self, "trainer")
    return trainer and trainer.strategy.device_mesh
  end,
}

return module_trainer
