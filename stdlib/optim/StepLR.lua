-- stdlib/optim/StepLR.lua: multiplies the learning rate by `gamma` every `step_size` steps.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local StepLR = LRScheduler:extend("StepLR")

StepLR.__arguments = "optimizer step_size | gamma"

local OPTIONS <const> = LRScheduler.rows { gamma = { type = "number", default = 0.1, min = 0 } }

--- StepLR(optimizer, 30, {gamma = 0.1})
function StepLR:init(optimizer, step_size, options)
  self:check_optimizer(optimizer)
  self.step_size = config.argument(step_size, "integer", "optim.StepLR", "step_size", { min = 1 })
  local o = config.check(options, OPTIONS, "optim.StepLR")
  self.gamma = o.gamma
  LRScheduler.init(self, optimizer, o.warmup)
end

function StepLR:rate(base, n, _)
  return base * self.gamma ^ (n // self.step_size)
end

return StepLR
