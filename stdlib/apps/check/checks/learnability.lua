--- stdlib/apps/check/checks/learnability.lua: checks that the model can overfit a batch of two
--- samples.
--
-- By an Adam of its own: the question is whether the loss can fall at all, not whether the script's
-- learning rate suits. The same draws each time, so that dropout and noise are no excuse.
local Experiment = require "ltrain.apps.check.experiment"
local c = require "ltrain.c"

local STEPS <const>, LEAST <const> = 20, 4
local RATES <const> = { 1e-3, 1e-2, 1e-4 }
local SECONDS <const> = 6 -- in all
local ENOUGH <const> = 0.01 -- by which share the loss must fall
local NOTHING <const> = 1e-5 -- a loss that need not fall, and in bf16 may have no step left

local function trainable(state)
  local list = {}
  for _, parameter in state.module:named_parameters() do
    if parameter.requires_grad then list[#list + 1] = parameter end
  end
  return list
end

-- One run of steps; the least loss, and whether all were made.
local function train(context, state, rate, first, deadline)
  local Adam = require "ltrain.optim.Adam"
  local optimizer, least = Adam(trainable(state), { lr = rate }), first
  for _ = 1, STEPS do
    local loss = Experiment.step(state, context.batch, context.draws)
    if not loss or not loss.requires_grad then return nil end
    least = math.min(least, loss:item())
    local is_learnt = least < first - ENOUGH * math.abs(first)
    if is_learnt and context.learn_steps >= LEAST or c.runtime.clock() > deadline then break end
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    context.learn_steps = context.learn_steps + 1
  end
  optimizer:zero_grad()
  return least
end

local function judge(context, state)
  local loss = Experiment.step(state, context.batch, context.draws)
  local first = loss and loss:item()
  if not first or context.is_broken(first) or math.abs(first) < NOTHING then return end
  context.learn_steps = 0
  local deadline, least = c.runtime.clock() + SECONDS, first
  for _, rate in ipairs(RATES) do
    least = train(context, state, rate, first, deadline)
    if not least or least < first - ENOUGH * math.abs(first) then return end
    if c.runtime.clock() > deadline then
      context.report:skip(("whether a batch can be learnt: a step takes %.1f s"):format(
        context.step_seconds))
      return
    end
  end
  context.report:warn("learning", context.step_line, ("a batch of two samples is not learnt: its "
    .. "loss is %.6g, and %.6g at best within %d steps of Adam with lr = %g, %g or %g"):format(
    first, least, STEPS, RATES[1], RATES[2], RATES[3]),
    "check that targets match the inputs and the scale of the outputs, and that the loss is "
      .. "computed from the outputs")
end

return {
  after = function(context, state)
    if not state.automatic then
      context.report:skip "whether a batch can be learnt: manual optimization"
    elseif context.first and context.loss_before and not context.broken then
      local ok, message = Experiment.try(judge, context, state)
      if ok then return end
      message = c.runtime.error_text(message)
      if not message:find "freed by an earlier backward" then error(message, 0) end
      context.report:error("learning", context.step_line,
        "the backward of the second step continues into the graph of the first: a tensor kept "
          .. "from one step to the next has its graph", "detach it: self.h = h:detach()")
    end
  end,
}
