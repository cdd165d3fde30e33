-- stdlib/autograd/retain_grad.lua: x:retain_grad(): keeps the gradient of a tensor that is not a
-- leaf.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

--- Has backward put the gradient of a tensor that is not a leaf into its `grad` too. Returns
--- nothing.
return function(x)
  if not c.is_tensor(x) or not x.requires_grad then
    errors.blame("retain_grad: needs a tensor that requires grad: got %s", errors.show(x))
  end
  if x.is_leaf then return end
  local weak = setmetatable({ x }, { __mode = "v" }) -- the hook is part of what x refers to
  x:register_hook(function(grad)
    local kept = weak[1]
    if kept then kept.grad = kept.grad and kept.grad + grad or grad end
  end)
end
