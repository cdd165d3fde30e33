--- stdlib/apps/check/checks/step_size.lua: checks what one optimizer step does to the loss of its
--- batch.
local Experiment = require "ltrain.apps.check.experiment"
local c = require "ltrain.c"

local WORSE <const> = 1000 -- times the loss before

-- The loss in training, on the same draws.
local function loss_of(context, state)
  local ok, loss = Experiment.try(Experiment.step, state, context.batch, context.draws)
  return ok and loss and loss:item() or nil
end

return {
  before = function(context, state)
    if not context.first or not state.automatic then return end
    context.loss_before = loss_of(context, state)
  end,
  after = function(context, state)
    local before = context.loss_before
    if not before then return end
    local after = loss_of(context, state)
    if not after then return end
    if context.is_broken(after) or after > WORSE * math.max(math.abs(before), 0.1) then
      context.broken = true
      context.report:error("step", c.runtime.function_line(state.module.configure_optimizers),
        ("one optimizer step (lr = %g) takes the loss of its batch from %.4g to %.4g"):format(
          state.optimizers[1].param_groups[1].lr, before, after),
        "lower the learning rate; gradient_clip_val of the Trainer limits single steps")
    end
  end,
}
