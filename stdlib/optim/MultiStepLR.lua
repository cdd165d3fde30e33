-- stdlib/optim/MultiStepLR.lua: multiplies the learning rate by `gamma` at each milestone.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"

local MultiStepLR = LRScheduler:extend("MultiStepLR")

MultiStepLR.__arguments = "optimizer milestones | gamma"

local OPTIONS <const> = LRScheduler.rows { gamma = { type = "number", default = 0.1, min = 0 } }

--- MultiStepLR(optimizer, {30, 80}, {gamma = 0.1}): milestones are numbers of steps.
function MultiStepLR:init(optimizer, milestones, options)
  self:check_optimizer(optimizer)
  local where = "optim.MultiStepLR"
  local o = config.check(options, OPTIONS, where)
  self.milestones = config.argument(milestones, "table", where, "milestones")
  for _, milestone in ipairs(milestones) do
    config.argument(milestone, "integer", where, "a milestone", { min = 0 })
  end
  self.gamma = o.gamma
  LRScheduler.init(self, optimizer, o.warmup)
end

function MultiStepLR:rate(base, n, _)
  local reached = 0
  for _, milestone in ipairs(self.milestones) do
    if milestone <= n then reached = reached + 1 end
  end
  return base * self.gamma ^ reached
end

return MultiStepLR
