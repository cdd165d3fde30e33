-- stdlib/nn/grads_of.lua: the gradients of a list of parameters, or of one, for the clippers.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local zero_grad = require "ltrain.core.zero_grad"

--- The list, those without a gradient left out; `who` begins the text of errors.
return function(parameters, who)
  if c.is_tensor(parameters) then parameters = { parameters } end
  if type(parameters) ~= "table" or getmetatable(parameters) ~= nil then
    errors.blame("%s: needs a list of tensors, like net:parameters(): got %s", who,
      errors.show(parameters))
  end
  local grads = {}
  for i, parameter in ipairs(parameters) do
    if not c.is_tensor(parameter) then
      errors.blame("%s: element %d of the list must be a tensor: got %s", who, i,
        errors.show(parameter))
    end
    if zero_grad.is_elsewhere(parameter) then
      errors.blame("%s: the gradients of these parameters are divided among the ranks "
        .. "(strategies.Sharded, stages 2 and 3): write gradient_clip_val in the Trainer, or "
        .. "self:clip_gradients(optimizer, value) in a hook or before optimizer:step()", who)
    end
    grads[#grads + 1] = parameter.grad -- nil adds nothing
  end
  return grads
end
