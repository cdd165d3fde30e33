-- stdlib/optim/ChainedScheduler.lua: chains schedulers: the learning rate is multiplied by all
-- their factors.

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"
local class = require "ltrain.core.class"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local ChainedScheduler = LRScheduler:extend("ChainedScheduler")

local OPTIONS <const> = LRScheduler.rows {}

--- ChainedScheduler{ConstantLR(optimizer), ExponentialLR(optimizer, 0.9)}: for schedulers that
--- multiply the initial learning rate.
function ChainedScheduler:init(schedulers, options)
  local where = "optim.ChainedScheduler"
  local o = config.check(options, OPTIONS, where)
  config.argument(schedulers, "table", where, "schedulers")
  if #schedulers == 0 then errors.blame("%s: there are no schedulers", where) end
  for i, scheduler in elements.each(schedulers) do
    if not class.is_a(scheduler, LRScheduler) or scheduler.reduce_on_plateau then
      errors.blame("%s: scheduler %d must be one whose rate follows from the number of steps: "
        .. "got %s", where, i, errors.show(scheduler))
    elseif scheduler.optimizer ~= schedulers[1].optimizer then
      errors.blame("%s: scheduler %d is of another optimizer", where, i)
    end
  end
  self.schedulers = schedulers
  LRScheduler.init(self, schedulers[1].optimizer, o.warmup)
end

function ChainedScheduler:rate(base, n, index)
  local rate = base
  for _, scheduler in ipairs(self.schedulers) do
    local value = scheduler:value(1.0, n, index)
    rate = rate * (type(value) == "table" and value.lr or value)
  end
  return rate
end

return ChainedScheduler
