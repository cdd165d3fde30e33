--- stdlib/dist/check_optimizer.lua: raises unless a value is an optimizer.
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

return function(optimizer, who)
  if class.has_method(optimizer, "step") and type(optimizer.param_groups) == "table" then return end
  errors.blame("%s: needs an optimizer: got %s", who, errors.show(optimizer))
end
