-- stdlib/optim/CosineAnnealingWarmRestarts.lua: cosine annealing to `eta_min` with warm restarts
-- (Loshchilov and Hutter 2017).

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local CosineAnnealingWarmRestarts = LRScheduler:extend("CosineAnnealingWarmRestarts")

CosineAnnealingWarmRestarts.__arguments = "optimizer T_0 | T_mult eta_min"

local OPTIONS <const> = LRScheduler.rows {
  T_mult = { type = "integer", default = 1, min = 1,
    doc = "factor by which each period is longer than the previous one" },
  eta_min = { type = "number", default = 0.0, min = 0 },
}

--- CosineAnnealingWarmRestarts(optimizer, 10, {T_mult = 2}): a first period of T_0 = 10 steps.
function CosineAnnealingWarmRestarts:init(optimizer, T_0, options)
  self:check_optimizer(optimizer)
  local where = "optim.CosineAnnealingWarmRestarts"
  local o = config.check(options, OPTIONS, where)
  self.T_0 = config.argument(T_0, "integer", where, "T_0", { min = 1 })
  self.T_mult, self.eta_min = o.T_mult, o.eta_min
  LRScheduler.init(self, optimizer, o.warmup)
end

function CosineAnnealingWarmRestarts:rate(base, n, _)
  local period = self.T_0
  if self.T_mult == 1 then n = n % period end
  while n >= period do n, period = n - period, period * self.T_mult end
  return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * n / period)) / 2
end

return CosineAnnealingWarmRestarts
