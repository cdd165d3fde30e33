--- stdlib/trainer/managed_optimizer.lua: an optimizer as the module gets it during fit.
--
-- It is the optimizer in all but `step`, which also calls the hook and counts. Manual optimization
-- gets these from `self:optimizers()`, an overridden `optimizer_step` as its argument.
local call = require "ltrain.trainer.call"

local methods = {}

--- Runs the closure, if any, then steps; counts one step of the Trainer.
function methods.step(self, closure, ...)
  local state, optimizer = rawget(self, "_state"), rawget(self, "_optimizer")
  local result
  if state.automatic then
    result = optimizer:step(closure, ...)
  else
    if closure then result = closure() end
    call.hook(state, "on_before_optimizer_step", optimizer)
    optimizer:step(nil, ...)
  end
  state.trainer.global_step = state.trainer.global_step + 1
  return result
end

local meta = { __name = "ManagedOptimizer" }

function meta.__index(self, key)
  local own = methods[key]
  if own then return own end
  return rawget(self, "_optimizer")[key]
end

function meta.__newindex(self, key, value)
  rawget(self, "_optimizer")[key] = value
end

function meta.__tostring(self)
  return tostring(rawget(self, "_optimizer"))
end

return function(state, optimizer)
  return setmetatable({ _state = state, _optimizer = optimizer }, meta)
end
