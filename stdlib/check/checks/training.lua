--- stdlib/check/checks/training.lua: how training_step uses modes, optimizers and gradients.

-- In manual optimization: how often the optimizers' functions are called in the real step.
local function count(context, state)
  local counts = { step = 0, zero_grad = 0 }
  context.manual = counts
  local function wrap(object, name)
    local own, plain = rawget(object, name), object[name]
    if type(plain) ~= "function" then return end
    rawset(object, name, function(...)
      counts[name] = counts[name] + 1
      return plain(...)
    end)
    counts[#counts + 1] = function() rawset(object, name, own) end
  end
  for _, optimizer in ipairs(state.optimizers) do
    wrap(optimizer, "step")
    wrap(optimizer, "zero_grad")
  end
  wrap(state.module, "zero_grad")
end

return {
  at_start = function(context, state) context.was_training = state.module.training end,
  begins = function(context, state)
    if not state.automatic then count(context, state) end
  end,
  after = function(context, state)
    local where, counts = context.step_line, context.manual
    if context.was_training and not state.module.training then
      context.report:warn("training", where, "training_step leaves the module in evaluation mode: "
        .. "from the next batch on dropout and batch norm do not train", "call self:eval() outside "
        .. "of it; the Trainer switches modes around validation")
    end
    if not counts then return end
    for _, restore in ipairs(counts) do restore() end
    if #state.optimizers == 0 then return end
    if counts.step == 0 and next(context.gradients) == nil then
      context.report:error("training", where, "automatic_optimization is false, and training_step "
        .. "calls neither backward nor the step of an optimizer: nothing is learnt",
        "call self:manual_backward(loss) and optimizer:step(), or leave automatic_optimization out")
    elseif counts.step > 0 and counts.zero_grad == 0 then
      context.report:warn("training", where, "training_step calls optimizer:step(), and never "
        .. "zero_grad(): gradients of all batches before are added up",
        "call optimizer:zero_grad() in front of self:manual_backward(loss)")
    end
  end,
}
