--- stdlib/check/manual_loop.lua: a script that trains without a Trainer, as far as its first step.
local Optimizer = require "ltrain.optim.Optimizer"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local sandbox = require "ltrain.check.sandbox"
local visit = require "ltrain.check.source.visit"

local manual_loop = {}

-- Whether the script means to train: else it shows what an optimizer or a scheduler does.
local function trains(tree)
  local found = false
  visit(tree, function(node)
    found = found or node.method == "backward" or node.method == "zero_grad"
    return not found
  end)
  return found
end

-- What the gradients say at the first step.
local function look(context, optimizer)
  if not trains(context.source.tree) then return end
  context.manual = true
  local report, where = context.report, errors.where()
  local without, list = 0, parameters_of(optimizer)
  for _, parameter in ipairs(list) do
    if not parameter.grad then without = without + 1 end
  end
  if without == #list then
    report:error("gradient", where, ("none of the optimizer's %d parameters has a gradient")
      :format(#list), "call loss:backward() before optimizer:step(), and build the loss from them")
  elseif without > 0 then
    report:warn("gradient", where, ("%d of the optimizer's %d parameters have no gradient"):format(
      without, #list), "use them in the loss, or leave them out of the optimizer")
  end
  for _, group in ipairs(optimizer.param_groups) do
    if group.lr == 0 then
      report:error("optimizer", where, "the learning rate is 0: nothing is learnt",
        "give the optimizer an lr above 0")
    end
  end
end

--- Ends the script at the first step of an optimizer; to be closed.
function manual_loop.watch(context)
  local step = Optimizer.step
  rawset(Optimizer, "step", function(self, closure)
    if closure then closure() end
    look(context, self)
    sandbox.stop "a training loop without a Trainer: ended at its first optimizer step"
  end)
  return setmetatable({}, { __close = function() rawset(Optimizer, "step", step) end })
end

return manual_loop
