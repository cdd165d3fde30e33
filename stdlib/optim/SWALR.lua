-- stdlib/optim/SWALR.lua: anneals the learning rate to a constant, for weight averaging
-- (AveragedModel).
--
-- P. Izmailov and others, Averaging Weights Leads to Wider Optima, 2018.
--
-- It follows another scheduler: create both, and step this one instead of the other once averaging
-- begins. It has no warm-up.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local SWALR = LRScheduler:extend("SWALR")

local SIGNATURE <const> = config.signature {
  { "swa_lr", type = "number|table", required = true,
    doc = "the constant learning rate: a number, or a list with one per group" },
  { "anneal_epochs", type = "integer", default = 10, min = 0, doc = "steps of the annealing" },
  { "anneal_strategy", type = "string", default = "cos", choices = { "cos", "linear" },
    doc = "shape of the annealing" },
}

--- SWALR(optimizer, 0.05, {anneal_epochs = 5, anneal_strategy = "linear"})
function SWALR:init(optimizer, swa_lr, anneal_epochs, anneal_strategy)
  self:check_optimizer(optimizer)
  local where = "optim.SWALR"
  local o = config.arguments(where, SIGNATURE, swa_lr, anneal_epochs, anneal_strategy)
  self.swa_lrs = LRScheduler.per_group(optimizer, o.swa_lr, where, "swa_lr")
  self.anneal_epochs, self.anneal_strategy = o.anneal_epochs, o.anneal_strategy
  LRScheduler.init(self, optimizer)
end

function SWALR:rate(base, n, index)
  if n == 0 and self.anneal_epochs > 0 then
    return self.optimizer.param_groups[index].lr / self._factor
  end
  local t = math.min(1, n / math.max(1, self.anneal_epochs))
  if self.anneal_epochs == 0 then t = 1 end
  if self.anneal_strategy == "cos" then t = (1 - math.cos(math.pi * t)) / 2 end
  return self.swa_lrs[index] * t + base * (1 - t)
end

--- Takes a step; the first one starts from the optimizer's current learning rates.
function SWALR:step()
  if self.last_epoch == 0 then
    for i in ipairs(self.base_lrs) do
      self.base_lrs[i] = self.optimizer.param_groups[i].lr / self._factor
    end
  end
  LRScheduler.step(self)
end

return SWALR
