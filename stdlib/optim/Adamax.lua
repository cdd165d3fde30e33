-- stdlib/optim/Adamax.lua: Adam with the infinity norm instead of the mean of squares (Kingma and
-- Ba 2015).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local Adamax = Optimizer:extend("Adamax")

Adamax.__arguments = "params | lr betas eps weight_decay"

Adamax.options = options {
  lr = 2e-3, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = true, maximize = true,
  initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Adamax.slots = { step = "count", exp_avg = "tensor", exp_inf = "tensor" }

local SLOTS <const> = { "exp_avg", "exp_inf" }

function Adamax:_rule() return "adamax_step", SLOTS end

function Adamax:_numbers(group, step)
  local beta1, beta2 = group.betas[1], group.betas[2]
  return { lr = group.lr / (1 - beta1 ^ step), beta1 = beta1, beta2 = beta2, eps = group.eps,
           weight_decay = group.weight_decay }
end

return elementwise_update(Adamax)
