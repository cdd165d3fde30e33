-- stdlib/nn/clip_grad_norm_.lua: scales gradients down so that their total norm is bounded.

local c = require "ltrain.c"

--- Scale the gradients of a list of parameters in place so that the 2-norm of all of them together
--- is at most `max_norm`. Returns the norm before, a tensor of no dims.
return function(parameters, max_norm)
  local grads = {}
  for _, parameter in ipairs(parameters) do
    grads[#grads + 1] = parameter.grad -- nil adds nothing
  end
  if #grads == 0 then return c.zeros({}) end
  return c.clip_grad_norm(grads, max_norm)
end
