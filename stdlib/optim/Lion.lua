-- stdlib/optim/Lion.lua: Lion: steps of size lr in the direction of the sign of a running mean of
-- the gradient (Chen et al. 2023).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local Lion = Optimizer:extend("Lion")

Lion.__arguments = "params | lr betas weight_decay maximize"

Lion.options = options {
  lr = 1e-4, betas = { 0.9, 0.99 },
  weight_decay = { type = "number", default = 0, min = 0,
    doc = "this times lr times the weight is subtracted" },
  maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Lion.slots = { step = "count", exp_avg = "tensor" }

local SLOTS <const> = { "exp_avg" }

function Lion:_rule() return "lion_step", SLOTS end

function Lion:_numbers(group)
  return { lr = group.lr, beta1 = group.betas[1], beta2 = group.betas[2],
           shrink = 1 - group.lr * group.weight_decay }
end

return elementwise_update(Lion)
