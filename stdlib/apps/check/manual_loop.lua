--- stdlib/apps/check/manual_loop.lua: a script that trains without a Trainer, as far as its first
--- step.
local Module = require "ltrain.nn.Module"
local Optimizer = require "ltrain.optim.Optimizer"
local calls = require "ltrain.apps.check.source.calls"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local sandbox = require "ltrain.apps.check.sandbox"
local visit = require "ltrain.apps.check.source.visit"

local manual_loop = {}

local LOOPS <const> = { ["for"] = true, ["while"] = true, ["repeat"] = true }

-- Whether backward and step are called in a loop, and nothing in the script clears gradients.
local function adds_up(tree)
  local in_loop, clears = false, calls(tree, "zero_grad")
  visit(tree, function(node)
    in_loop = in_loop or LOOPS[node.kind] and calls(node, "backward") and calls(node, "step")
    for _, target in ipairs(node.kind == "assign" and node.targets or {}) do
      clears = clears or target.kind == "index" and target.key.value == "grad"
    end
  end)
  return in_loop and not clears
end

-- Gradients that zero_grad has taken away: in one pass, or in pass after pass of a loop.
local function check_zeroed(context, zeroed, without)
  if without then
    context.report:error("zero_grad", zeroed.where, "zero_grad() between backward() and step(): "
      .. "the step has no gradients, and changes nothing",
      "call zero_grad() right before backward(), or right after step()")
  elseif zeroed.again then
    context.report:error("zero_grad", zeroed.again, "zero_grad() in an iteration without a step: "
      .. "its gradients are lost, and the step uses those of its own iteration only",
      "call zero_grad() where step() is called, right after it")
  end
end

-- What the gradients say at the first step.
local function look(context, optimizer, zeroed)
  local tree = context.source.tree
  if not calls(tree, "backward", "zero_grad") then return end -- it shows what a step does
  context.manual = true
  local report, where = context.report, errors.where()
  local without, list = 0, parameters_of(optimizer)
  for _, parameter in ipairs(list) do
    if not parameter.grad then without = without + 1 end
  end
  if zeroed.where and (without == #list or zeroed.again) then
    check_zeroed(context, zeroed, without == #list)
  elseif without == #list then
    report:error("gradient", where, ("none of the optimizer's %d parameters has a gradient")
      :format(#list), "call loss:backward() before optimizer:step(), and build the loss from them")
  elseif without > 0 then
    report:warn("gradient", where, ("%d of the optimizer's %d parameters have no gradient"):format(
      without, #list), "use them in the loss, or leave them out of the optimizer")
  end
  if adds_up(tree) then
    report:warn("zero_grad", where, "the loop never calls zero_grad(): gradients of all earlier "
      .. "iterations add up", "call optimizer:zero_grad() in front of loss:backward()")
  end
  for _, group in ipairs(optimizer.param_groups) do
    if group.lr == 0 then
      report:error("optimizer", where, "the learning rate is 0: nothing is learnt",
        "give the optimizer an lr above 0")
    end
  end
end

-- A zero_grad that notes in `zeroed` where it takes gradients away, and where again.
local function noting(zeroed, plain, list_of)
  local passes = {}
  return function(self)
    local had = false
    for _, parameter in ipairs(list_of(self)) do had = had or parameter.grad ~= nil end
    local where = errors.where()
    if had then
      zeroed.where = where
      if passes[where] then zeroed.again = where end
    end
    passes[where] = true
    return plain(self)
  end
end

--- Ends the script at the first step of an optimizer; to be closed.
function manual_loop.watch(context)
  local step, zeroed, zero_grad = Optimizer.step, {}, {}
  for class, list_of in next, { [Optimizer] = parameters_of, [Module] = Module.parameters } do
    zero_grad[class] = class.zero_grad
    rawset(class, "zero_grad", noting(zeroed, class.zero_grad, list_of))
  end
  rawset(Optimizer, "step", function(self, closure)
    if closure then closure() end
    look(context, self, zeroed)
    sandbox.stop "a training loop without a Trainer: ended at its first optimizer step"
  end)
  return setmetatable({}, { __close = function()
    rawset(Optimizer, "step", step)
    for class, plain in next, zero_grad do rawset(class, "zero_grad", plain) end
  end })
end

return manual_loop
