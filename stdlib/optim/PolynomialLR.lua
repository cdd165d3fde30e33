-- stdlib/optim/PolynomialLR.lua: decays the learning rate to 0 by a power of the remaining steps.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local PolynomialLR = LRScheduler:extend("PolynomialLR")

PolynomialLR.__arguments = "optimizer | total_iters power"

local OPTIONS <const> = LRScheduler.rows {
  total_iters = { type = "integer", default = 5, min = 1, doc = "steps until 0" },
  power = { type = "number", default = 1.0, min = 0 },
}

--- PolynomialLR(optimizer, {total_iters = 100, power = 0.9})
function PolynomialLR:init(optimizer, options)
  self:check_optimizer(optimizer)
  local o = config.check(options, OPTIONS, "optim.PolynomialLR")
  self.total_iters, self.power = o.total_iters, o.power
  LRScheduler.init(self, optimizer, o.warmup)
end

function PolynomialLR:rate(base, n, _)
  return base * (1 - math.min(n, self.total_iters) / self.total_iters) ^ self.power
end

return PolynomialLR
