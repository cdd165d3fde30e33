--- stdlib/core/captured_steps.lua: the optimizer steps in a function that lt.cuda.graph captures.
--
-- Numbers of a step, as the learning rate and the count of steps, are the host's: a launch of the
-- graph asks the optimizers for them, with the gradients that they had.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"

local captured_steps = {}

--- Of the function that is being captured: a list of { optimizer =, gradients = { [parameter] } };
--- nil: none is.
captured_steps.list = nil

--- An optimizer is about to step.
function captured_steps.add(optimizer)
  if optimizer.update == nil or optimizer.update ~= optimizer.checked_update then
    errors.blame("cuda.graph: a step of %s cannot be captured: it computes more than its update "
      .. "with numbers of the host: call it after the captured function",
      errors.show(optimizer))
  end
  local gradients = {}
  for _, parameter in ipairs(parameters_of(optimizer)) do
    -- Others are replaced outside: their addresses are compared.
    if c.runtime.captures(parameter) then gradients[parameter] = parameter.grad end
  end
  table.insert(captured_steps.list, { optimizer = optimizer, gradients = gradients })
end

--- The optimizers make these steps again, on the host.
function captured_steps.run(list)
  for _, step in ipairs(list) do
    for parameter, gradient in next, step.gradients do
      if parameter.grad ~= gradient then parameter.grad = gradient end
    end
    step.optimizer:step()
  end
end

return captured_steps
