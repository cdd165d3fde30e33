-- stdlib/optim/ConstantLR.lua: multiplies the learning rate by `factor` for the first `total_iters`
-- steps.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local ConstantLR = LRScheduler:extend("ConstantLR")

ConstantLR.__arguments = "optimizer | factor total_iters"

local OPTIONS <const> = LRScheduler.rows {
  factor = { type = "number", default = 1 / 3, min = 0, max = 1 },
  total_iters = { type = "integer", default = 5, min = 0, doc = "steps until the full learning "
    .. "rate" },
}

--- ConstantLR(optimizer, {factor = 0.5, total_iters = 4})
function ConstantLR:init(optimizer, options)
  self:check_optimizer(optimizer)
  local o = config.check(options, OPTIONS, "optim.ConstantLR")
  self.factor, self.total_iters = o.factor, o.total_iters
  LRScheduler.init(self, optimizer, o.warmup)
end

function ConstantLR:rate(base, n, _)
  return n < self.total_iters and base * self.factor or base
end

return ConstantLR
