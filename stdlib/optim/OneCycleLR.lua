-- stdlib/optim/OneCycleLR.lua: the 1cycle policy: the learning rate rises to `max_lr` and then
-- falls far below its initial value, in one cycle over the whole training (Smith and Topin 2018).
-- Step it after each batch.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OneCycleLR = LRScheduler:extend("OneCycleLR")

OneCycleLR.__arguments = "optimizer max_lr | "
  .. "total_steps epochs steps_per_epoch pct_start anneal_strategy cycle_momentum "
  .. "base_momentum max_momentum div_factor final_div_factor three_phase"

local OPTIONS <const> = LRScheduler.rows {
  total_steps = { type = "integer", min = 1, doc = "steps of the cycle" },
  epochs = { type = "integer", min = 1, doc = "instead of total_steps, with steps_per_epoch" },
  steps_per_epoch = { type = "integer", min = 1 },
  pct_start = { type = "number", default = 0.3, min = 0, max = 1,
    doc = "fraction of the steps in which the learning rate rises" },
  anneal_strategy = { type = "string", default = "cos", choices = { "cos", "linear" } },
  cycle_momentum = { type = "boolean", default = true,
    doc = "cycle the momentum (or betas[1]) inversely" },
  base_momentum = { type = "number|table", default = 0.85, doc = "lower bound of the momentum" },
  max_momentum = { type = "number|table", default = 0.95, doc = "upper bound of the momentum" },
  div_factor = { type = "number", default = 25.0, above = 0,
    doc = "the initial learning rate is max_lr divided by this" },
  final_div_factor = { type = "number", default = 1e4, above = 0,
    doc = "the final learning rate is the initial one divided by this" },
  three_phase = { type = "boolean", default = false,
    doc = "first fall back to the initial learning rate, as fast as it rose, then to the final "
      .. "one" },
}

local ANNEAL <const> = {
  cos = function(from, to, share) return to + (from - to) / 2 * (math.cos(math.pi * share) + 1) end,
  linear = function(from, to, share) return (to - from) * share + from end,
}

-- Phases: the step at which each ends, and where rate and momentum go.
local function phases_of(o, total)
  local rise = { till = o.pct_start * total - 1, from = "first", to = "most", falls = true }
  if not o.three_phase then
    return { rise, { till = total - 1, from = "most", to = "last", rises = true } }
  end
  return { rise, { till = 2 * o.pct_start * total - 2, from = "most", to = "first", rises = true },
    { till = total - 1, from = "first", to = "last" } }
end

local function check_momentum(optimizer)
  for _, group in ipairs(optimizer and optimizer.param_groups or {}) do
    if group.momentum == nil and group.betas == nil then
      errors.blame("optim.OneCycleLR: cycle_momentum = true needs an optimizer with momentum or "
        .. "betas: got %s", errors.show(optimizer))
    end
  end
end

--- OneCycleLR(optimizer, 0.1, {total_steps = 1000}): max_lr is a number, or a list with one per
--- group.
function OneCycleLR:init(optimizer, max_lr, options)
  self:check_optimizer(optimizer)
  local where = "optim.OneCycleLR"
  local o = config.check(options, OPTIONS, where)
  self.total_steps = o.total_steps or o.epochs and o.steps_per_epoch
    and o.epochs * o.steps_per_epoch
  if not self.total_steps then
    errors.blame("%s: total_steps is needed, or epochs and steps_per_epoch", where)
  end
  self.max_lrs = LRScheduler.per_group(optimizer, max_lr, where, "max_lr")
  self.phases, self.anneal = phases_of(o, self.total_steps), ANNEAL[o.anneal_strategy]
  self.final_div_factor = o.final_div_factor
  if o.cycle_momentum then
    check_momentum(optimizer)
    self.base_momentums = LRScheduler.per_group(optimizer, o.base_momentum, where, "base_momentum")
    self.max_momentums = LRScheduler.per_group(optimizer, o.max_momentum, where, "max_momentum")
  end
  for i, most in ipairs(self.max_lrs) do
    optimizer.param_groups[i].initial_lr = most / o.div_factor
  end
  LRScheduler.init(self, optimizer, o.warmup)
end

function OneCycleLR:rate(base, n, index)
  if n > self.total_steps then
    errors.blame("optim.OneCycleLR: step %d of %d: give it as many total_steps as it makes steps",
      n, self.total_steps)
  end
  local rates = { first = base, most = self.max_lrs[index], last = base / self.final_div_factor }
  local phase, start = self.phases[1], 0
  for k = 2, #self.phases do
    if n > phase.till then phase, start = self.phases[k], phase.till end
  end
  local share = (n - start) / (phase.till - start)
  local lr = self.anneal(rates[phase.from], rates[phase.to], share)
  if not self.base_momentums then return lr end
  local low, high = self.base_momentums[index], self.max_momentums[index]
  local from, to = phase.rises and low or high, phase.falls and low or high
  return { lr = lr, momentum = self.anneal(from, to, share) }
end

return OneCycleLR
