-- stdlib/optim/Adadelta.lua: Adadelta: the gradient scaled by the ratio of the running root mean
-- squares of steps and gradients (Zeiler 2012).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local Adadelta = Optimizer:extend("Adadelta")

Adadelta.__arguments = "params | lr rho eps weight_decay"

Adadelta.options = options {
  lr = 1.0,
  rho = { type = "number", default = 0.9, min = 0, max = 1,
    doc = "decay rate of the running means" },
  eps = 1e-6, weight_decay = true, maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Adadelta.slots = { step = "count", square_avg = "tensor", acc_delta = "tensor" }

local SLOTS <const> = { "square_avg", "acc_delta" }

function Adadelta:_rule() return "adadelta_step", SLOTS end

function Adadelta:_numbers(group)
  return { lr = group.lr, beta2 = group.rho, eps = group.eps, weight_decay = group.weight_decay }
end

return elementwise_update(Adadelta)
