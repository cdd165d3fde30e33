-- stdlib/optim/LinearLR.lua: a factor of the learning rate that changes linearly.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local LinearLR = LRScheduler:extend("LinearLR")

LinearLR.__arguments = "optimizer | start_factor end_factor total_iters"

local OPTIONS <const> = LRScheduler.rows {
  start_factor = { type = "number", default = 1 / 3, above = 0, max = 1 },
  end_factor = { type = "number", default = 1.0, min = 0, max = 1 },
  total_iters = { type = "integer", default = 5, min = 1, doc = "steps until end_factor" },
}

--- LinearLR(optimizer, {start_factor = 1.0, end_factor = 0.1, total_iters = 100})
function LinearLR:init(optimizer, options)
  self:check_optimizer(optimizer)
  local o = config.check(options, OPTIONS, "optim.LinearLR")
  self.start_factor, self.end_factor = o.start_factor, o.end_factor
  self.total_iters = o.total_iters
  LRScheduler.init(self, optimizer, o.warmup)
end

function LinearLR:rate(base, n, _)
  local share = math.min(n, self.total_iters) / self.total_iters
  return base * (self.start_factor + (self.end_factor - self.start_factor) * share)
end

return LinearLR
