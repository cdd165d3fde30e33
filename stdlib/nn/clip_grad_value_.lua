-- stdlib/nn/clip_grad_value_.lua: clips each element of gradients to a range.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local grads_of = require "ltrain.nn.grads_of"

--- Clips the gradients of a list of parameters, or of one, in place to -clip_value..clip_value.
return function(parameters, clip_value)
  config.argument(clip_value, "number", "clip_grad_value_", "clip_value")
  c.clip_grad_value(grads_of(parameters, "clip_grad_value_"), clip_value)
end
