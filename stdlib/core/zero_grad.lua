-- stdlib/core/zero_grad.lua: clears the gradient of a parameter, and what a strategy keeps of it
-- elsewhere.
local c = require "ltrain.c"

local zero_grad = {}

-- By parameter: fn(), which clears what is kept elsewhere.
local elsewhere = setmetatable({}, { __mode = "k" })

--- From here on fn() is called, too, when the parameter's gradient is cleared (nil: nothing is).
function zero_grad.also(parameter, fn) elsewhere[parameter] = fn end

--- Sets the gradient to nil; with `to_zero`, to zeros where there is one.
function zero_grad.clear(parameter, to_zero)
  local grad = to_zero and parameter.grad
  parameter.grad = grad and c.zeros_like(grad) or nil
  local also = elsewhere[parameter]
  if also then also() end
end

return zero_grad
