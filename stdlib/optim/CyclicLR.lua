-- stdlib/optim/CyclicLR.lua: cycles the learning rate between two bounds (Smith 2017).

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local CyclicLR = LRScheduler:extend("CyclicLR")

CyclicLR.__arguments = "optimizer base_lr max_lr | "
  .. "step_size_up step_size_down mode gamma scale_fn scale_mode cycle_momentum "
  .. "base_momentum max_momentum"

local OPTIONS <const> = LRScheduler.rows {
  step_size_up = { type = "integer", default = 2000, min = 1, doc = "steps of the rising half" },
  step_size_down = { type = "integer", min = 1,
    doc = "steps of the falling half; by default step_size_up" },
  mode = { type = "string", default = "triangular",
    choices = { "triangular", "triangular2", "exp_range" },
    doc = "the amplitude is constant, halved after each cycle, or multiplied by gamma at each "
      .. "step" },
  gamma = { type = "number", default = 1.0, above = 0 },
  scale_fn = { type = "function", doc = "amplitude as a function of the cycle or step, instead "
    .. "of mode" },
  scale_mode = { type = "string", default = "cycle", choices = { "cycle", "iterations" },
    doc = "whether scale_fn gets the number of the cycle (from 1) or of steps" },
  cycle_momentum = { type = "boolean", default = true,
    doc = "cycle the momentum (or betas[1]) inversely" },
  base_momentum = { type = "number|table", default = 0.8, doc = "lower bound of the momentum" },
  max_momentum = { type = "number|table", default = 0.9, doc = "upper bound of the momentum" },
}

-- Groups whose momentum a schedule changes must have one.
local function check_momentum(optimizer, where)
  for _, group in ipairs(optimizer and optimizer.param_groups or {}) do
    if group.momentum == nil and group.betas == nil then
      errors.blame("%s: cycle_momentum = true needs an optimizer with momentum or betas: got %s",
        where, errors.show(optimizer))
    end
  end
end

-- A function of the number of the cycle and of that of steps.
local function scale_of(o)
  local own, gamma = o.scale_fn, o.gamma
  if own then
    return function(cycle, n) return own(o.scale_mode == "cycle" and cycle or n) end
  elseif o.mode == "triangular" then
    return function() return 1.0 end
  elseif o.mode == "triangular2" then
    return function(cycle) return 1 / 2.0 ^ (cycle - 1) end
  end
  return function(_, n) return gamma ^ n end
end

--- CyclicLR(optimizer, 1e-3, 1e-2, {step_size_up = 500}): base_lr and max_lr are numbers, or lists
--- with one per group.
function CyclicLR:init(optimizer, base_lr, max_lr, options)
  self:check_optimizer(optimizer)
  local where = "optim.CyclicLR"
  local o = config.check(options, OPTIONS, where)
  local base = LRScheduler.per_group(optimizer, base_lr, where, "base_lr")
  self.max_lrs = LRScheduler.per_group(optimizer, max_lr, where, "max_lr")
  self.up, self.total = o.step_size_up, o.step_size_up + (o.step_size_down or o.step_size_up)
  self.scale = scale_of(o)
  if o.cycle_momentum then
    check_momentum(optimizer, where)
    self.base_momentums = LRScheduler.per_group(optimizer, o.base_momentum, where, "base_momentum")
    self.max_momentums = LRScheduler.per_group(optimizer, o.max_momentum, where, "max_momentum")
  end
  for i, lr in ipairs(base) do optimizer.param_groups[i].initial_lr = lr end
  LRScheduler.init(self, optimizer, o.warmup)
end

function CyclicLR:rate(base, n, index)
  local cycle, ratio = 1 + n // self.total, self.up / self.total
  local x = 1 + n / self.total - cycle
  local height = x <= ratio and x / ratio or (x - 1) / (ratio - 1)
  height = height * self.scale(cycle, n)
  local lr = base + (self.max_lrs[index] - base) * height
  if not self.base_momentums then return lr end
  local low, high = self.base_momentums[index], self.max_momentums[index]
  return { lr = lr, momentum = high - (high - low) * height }
end

return CyclicLR
