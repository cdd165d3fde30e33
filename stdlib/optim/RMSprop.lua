-- stdlib/optim/RMSprop.lua: RMSprop: the gradient divided by the root of the running mean of its
-- square (Hinton 2012).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local RMSprop = Optimizer:extend("RMSprop")

RMSprop.__arguments = "params | lr alpha eps weight_decay momentum centered "
  .. "(capturable) (foreach) maximize"

RMSprop.options = options {
  lr = 1e-2,
  alpha = { type = "number", default = 0.99, min = 0, doc = "decay rate of the running means" },
  eps = 1e-8, weight_decay = true,
  momentum = { type = "number", default = 0, min = 0, doc = "momentum factor" },
  centered = { type = "boolean", default = false,
    doc = "divide by the root of the variance instead" },
  maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
RMSprop.slots = { step = "count", square_avg = "tensor", grad_avg = "tensor?",
                  momentum_buffer = "tensor?" }

function RMSprop:_rule(group)
  local slots = { "square_avg" }
  if group.centered then slots[2] = "grad_avg" end
  if group.momentum > 0 then slots[#slots + 1] = "momentum_buffer" end
  return group.centered and "centered_rmsprop_step" or "rmsprop_step", slots
end

function RMSprop:_numbers(group)
  return { lr = group.lr, beta2 = group.alpha, eps = group.eps, momentum = group.momentum,
           weight_decay = group.weight_decay }
end

return elementwise_update(RMSprop)
