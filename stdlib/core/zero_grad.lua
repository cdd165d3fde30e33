--- stdlib/core/zero_grad.lua: clears the gradient of a parameter, and the copies of it that a
--- strategy keeps.
local c = require "ltrain.c"

local zero_grad = {}

-- By parameter: { clear = fn(), has = fn() -> whether there is something }.
local elsewhere = setmetatable({}, { __mode = "k" })

--- From here on clear() is called, too, when the parameter's gradient is cleared; has() says
--- whether there is something to clear. Both nil: there is nothing any more.
function zero_grad.also(parameter, clear, has)
  elsewhere[parameter] = clear and { clear = clear, has = has } or nil
end

--- Whether the parameter's gradient is elsewhere alone.
function zero_grad.is_elsewhere(parameter)
  local also = elsewhere[parameter]
  return also ~= nil and parameter.grad == nil and also.has()
end

--- Sets the gradient to nil; with `to_zero`, to zeros where there is one.
function zero_grad.clear(parameter, to_zero)
  local grad = to_zero and parameter.grad
  parameter.grad = grad and c.zeros_like(grad) or nil
  local also = elsewhere[parameter]
  if also then also.clear() end
end

return zero_grad
