-- stdlib/optim/ExponentialLR.lua: multiplies the learning rate by `gamma` at every step.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local ExponentialLR = LRScheduler:extend("ExponentialLR")

ExponentialLR.__arguments = "optimizer gamma |"

local OPTIONS <const> = LRScheduler.rows {}

--- ExponentialLR(optimizer, 0.95)
function ExponentialLR:init(optimizer, gamma, options)
  self:check_optimizer(optimizer)
  local o = config.check(options, OPTIONS, "optim.ExponentialLR")
  self.gamma = config.argument(gamma, "number", "optim.ExponentialLR", "gamma", { min = 0 })
  LRScheduler.init(self, optimizer, o.warmup)
end

function ExponentialLR:rate(base, n, _)
  return base * self.gamma ^ n
end

return ExponentialLR
