-- stdlib/optim/Adagrad.lua: Adagrad: the gradient divided by the root of the sum of its squares
-- (Duchi et al. 2011).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local Adagrad = Optimizer:extend("Adagrad")

Adagrad.__arguments = "params | lr lr_decay weight_decay initial_accumulator_value eps"

Adagrad.options = options {
  lr = 1e-2,
  lr_decay = { type = "number", default = 0, min = 0,
    doc = "lr is divided by 1 + this times the number of steps" },
  weight_decay = true,
  initial_accumulator_value = { type = "number", default = 0, min = 0,
    doc = "initial value of the sum" },
  eps = 1e-10, maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Adagrad.slots = { step = "count", sum = "tensor" }

local SLOTS <const> = { "sum" }

function Adagrad:_rule() return "adagrad_step", SLOTS end

function Adagrad:_initial(group) return group.initial_accumulator_value end

function Adagrad:_numbers(group, step)
  return { lr = group.lr / (1 + (step - 1) * group.lr_decay), eps = group.eps,
           weight_decay = group.weight_decay }
end

return elementwise_update(Adagrad)
