--- stdlib/apps/check/checks/training_step.lua: how training_step uses modes, optimizers and
--- gradients.
local calls = require "ltrain.apps.check.source.calls"

-- Whether the script has a backward and a step: those of a batch that comes later.
local function is_later(context)
  local tree = context.source and context.source.tree
  return tree and calls(tree, "step") and calls(tree, "backward", "manual_backward")
end

return {
  at_start = function(context, state) context.was_training = state.module.training end,
  after = function(context, state)
    local where, counts = context.step_line, context.counts
    if context.was_training and not state.module.training then
      context.report:warn("training", where, "training_step leaves the module in evaluation mode: "
        .. "from the next batch on dropout and batch norm do not train", "call self:eval() outside "
        .. "of it; the Trainer switches modes around validation")
    end
    if state.automatic or #state.optimizers == 0 then return end
    if counts.steps == 0 and next(context.gradients) == nil and not is_later(context) then
      context.report:error("training", where, "automatic_optimization is false, and training_step "
        .. "calls neither backward nor the step of an optimizer: nothing is learnt",
        "call self:manual_backward(loss) and optimizer:step(), or leave automatic_optimization out")
    elseif counts.steps > 0 and counts.zeroed == 0 then
      context.report:warn("training", where, "training_step calls optimizer:step(), and never "
        .. "zero_grad(): gradients of all earlier batches add up",
        "call optimizer:zero_grad() in front of self:manual_backward(loss)")
    end
  end,
}
