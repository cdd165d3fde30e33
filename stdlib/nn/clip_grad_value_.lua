-- stdlib/nn/clip_grad_value_.lua: cuts each number of the gradients to a range.

local c = require "ltrain.c"

--- Cut the gradients of a list of parameters in place to -clip_value..clip_value.
return function(parameters, clip_value)
  local _ <close> = c.no_grad()
  for _, parameter in ipairs(parameters) do
    local grad = parameter.grad
    if grad then grad:clamp_(-clip_value, clip_value) end
  end
end
