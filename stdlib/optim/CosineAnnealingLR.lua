-- stdlib/optim/CosineAnnealingLR.lua: cosine annealing from the initial learning rate to `eta_min`.
--
-- I. Loshchilov, F. Hutter, SGDR, 2017, without its restarts.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local CosineAnnealingLR = LRScheduler:extend("CosineAnnealingLR")

CosineAnnealingLR.__arguments = "optimizer T_max | eta_min"

local OPTIONS <const> = LRScheduler.rows { eta_min = { type = "number", default = 0.0, min = 0 } }

--- CosineAnnealingLR(optimizer, 100, {eta_min = 1e-5}): T_max steps from the maximum to the
--- minimum, after which the learning rate rises again.
function CosineAnnealingLR:init(optimizer, T_max, options)
  self:check_optimizer(optimizer)
  self.T_max = config.argument(T_max, "integer", "optim.CosineAnnealingLR", "T_max", { min = 1 })
  local o = config.check(options, OPTIONS, "optim.CosineAnnealingLR")
  self.eta_min = o.eta_min
  LRScheduler.init(self, optimizer, o.warmup)
end

function CosineAnnealingLR:rate(base, n, _)
  return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * n / self.T_max)) / 2
end

return CosineAnnealingLR
