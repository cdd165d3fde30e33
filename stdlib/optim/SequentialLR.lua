-- stdlib/optim/SequentialLR.lua: applies schedulers one after the other.
--
--   local lt = require "ltrain"
--   local optimizer = lt.optim.SGD(lt.nn.Linear(2, 1):parameters(), {lr = 1.0})
--   local scheduler = lt.optim.SequentialLR(optimizer, {
--     lt.optim.ConstantLR(optimizer, {factor = 0.5, total_iters = 3}),
--     lt.optim.ExponentialLR(optimizer, 0.5),
--   }, {3})
--   local rates = {}
--   for i = 1, 6 do
--     rates[i] = scheduler:get_last_lr()[1]
--     scheduler:step()
--   end
--   print(table.concat(rates, " "))
--   -- prints: 0.5 0.5 0.5 1.0 0.5 0.25

local LRScheduler = require "ltrain.optim.LRScheduler"
local config = require "ltrain.core.config"
local class = require "ltrain.core.class"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local SequentialLR = LRScheduler:extend("SequentialLR")

local OPTIONS <const> = LRScheduler.rows {}

-- A list of schedulers of `optimizer` whose rates follow from the number of steps.
local function check_list(optimizer, schedulers, where)
  config.argument(schedulers, "table", where, "schedulers")
  if #schedulers == 0 then errors.blame("%s: there are no schedulers", where) end
  for i, scheduler in elements.each(schedulers) do
    if not class.is_a(scheduler, LRScheduler) or scheduler.reduce_on_plateau then
      errors.blame("%s: scheduler %d must be one whose rate follows from the number of steps: "
        .. "got %s", where, i, errors.show(scheduler))
    elseif scheduler.optimizer ~= optimizer then
      errors.blame("%s: scheduler %d is of another optimizer", where, i)
    end
  end
end

--- SequentialLR(optimizer, {first, second}, {10}): `second` begins after 10 steps.
function SequentialLR:init(optimizer, schedulers, milestones, options)
  self:check_optimizer(optimizer)
  local where = "optim.SequentialLR"
  local o = config.check(options, OPTIONS, where)
  check_list(optimizer, schedulers, where)
  config.argument(milestones, "table", where, "milestones")
  if #milestones ~= #schedulers - 1 then
    errors.blame("%s: %d schedulers need %d milestones: got %d", where, #schedulers,
      #schedulers - 1, #milestones)
  end
  self.schedulers, self.milestones = schedulers, milestones
  LRScheduler.init(self, optimizer, o.warmup)
end

function SequentialLR:rate(_, n, index)
  local k = 1
  while self.milestones[k] and self.milestones[k] <= n do k = k + 1 end
  local scheduler = self.schedulers[k]
  return scheduler:value(scheduler.base_lrs[index], n - (self.milestones[k - 1] or 0), index)
end

return SequentialLR
