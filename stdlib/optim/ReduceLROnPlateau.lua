-- stdlib/optim/ReduceLROnPlateau.lua: multiplies the learning rate by `factor` when a metric stops
-- improving.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local ReduceLROnPlateau = LRScheduler:extend("ReduceLROnPlateau")

ReduceLROnPlateau.__arguments = "optimizer | "
  .. "mode factor patience threshold threshold_mode cooldown min_lr eps"

--- Whether `step` takes the value of a metric.
ReduceLROnPlateau.reduce_on_plateau = true

local OPTIONS <const> = LRScheduler.rows {
  mode = { type = "string", default = "min", choices = { "min", "max" },
           doc = "whether a smaller or a larger value is better" },
  factor = { type = "number", default = 0.1, min = 0, below = 1 },
  patience = { type = "integer", default = 10, min = 0,
               doc = "steps without improvement before a reduction" },
  threshold = { type = "number", default = 1e-4, min = 0,
    doc = "smaller changes are not an improvement" },
  threshold_mode = { type = "string", default = "rel", choices = { "rel", "abs" } },
  cooldown = { type = "integer", default = 0, min = 0,
               doc = "steps after a reduction that are ignored" },
  min_lr = { type = "number|table", default = 0.0, min = 0,
    doc = "lower bound: a number, or one per group" },
  eps = { type = "number", default = 1e-8, min = 0,
    doc = "minimum change of the learning rate" },
}

--- ReduceLROnPlateau(optimizer, {patience = 3})
function ReduceLROnPlateau:init(optimizer, options)
  self:check_optimizer(optimizer)
  for name, value in next, config.check(options, OPTIONS, "optim.ReduceLROnPlateau") do
    self[name] = value
  end
  self.best = self.mode == "min" and math.huge or -math.huge
  self.num_bad_epochs, self.cooldown_counter = 0, 0
  LRScheduler.init(self, optimizer, self.warmup)
end

-- After the warm-up the rates are changed where they stand, not computed from the number of steps.
function ReduceLROnPlateau:apply()
  if self.warmup > 0 and self.last_epoch <= self.warmup then LRScheduler.apply(self) end
end

function ReduceLROnPlateau:rate(base, _, _) return base end

local function is_better(self, value)
  local relative = self.threshold_mode == "rel"
  if self.mode == "min" then
    return value < (relative and self.best * (1 - self.threshold) or self.best - self.threshold)
  end
  return value > (relative and self.best * (1 + self.threshold) or self.best + self.threshold)
end

local function reduce(self)
  for i, group in ipairs(self.optimizer.param_groups) do
    local least = type(self.min_lr) == "table" and self.min_lr[i] or self.min_lr
    local lower = math.max(group.lr * self.factor, least)
    if group.lr - lower > self.eps then group.lr = lower end
  end
end

--- Takes a step with the value of the metric, a number or a tensor of one element.
function ReduceLROnPlateau:step(metric)
  local value = type(metric) == "userdata" and metric:item() or metric
  if type(value) ~= "number" then
    errors.blame("optim.ReduceLROnPlateau: step needs the metric's value: got %s",
      errors.show(metric))
  end
  self.last_epoch = self.last_epoch + 1
  if self.last_epoch <= self.warmup then return self:apply() end
  if is_better(self, value) then
    self.best, self.num_bad_epochs = value, 0
  else
    self.num_bad_epochs = self.num_bad_epochs + 1
  end
  if self.cooldown_counter > 0 then
    self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
  end
  if self.num_bad_epochs > self.patience then
    reduce(self)
    self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
  end
end

function ReduceLROnPlateau:state_dict()
  local state = LRScheduler.state_dict(self)
  state.best, state.num_bad_epochs = self.best, self.num_bad_epochs
  state.cooldown_counter = self.cooldown_counter
  return state
end

function ReduceLROnPlateau:load_state_dict(state)
  LRScheduler.load_state_dict(self, state)
  schema.check(state, { best = "number", cooldown_counter = "count", num_bad_epochs = "count" },
    "ReduceLROnPlateau")
  self.best, self.num_bad_epochs = state.best, state.num_bad_epochs
  self.cooldown_counter = state.cooldown_counter
end

return ReduceLROnPlateau
