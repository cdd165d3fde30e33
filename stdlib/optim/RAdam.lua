-- stdlib/optim/RAdam.lua: RAdam: Adam with rectified variance, which ignores the second moment
-- until its estimate is reliable (Liu et al. 2020).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local RAdam = Optimizer:extend("RAdam")

RAdam.__arguments = "params | lr betas eps weight_decay decoupled_weight_decay"

RAdam.options = options {
  lr = 1e-3, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = true,
  decoupled_weight_decay = true, maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
RAdam.slots = { step = "count", exp_avg = "tensor", exp_avg_sq = "tensor" }

local SLOTS <const> = { "exp_avg", "exp_avg_sq" }

function RAdam:_rule() return "radam_step", SLOTS end

function RAdam:_numbers(group, step)
  local lr, beta1, beta2 = group.lr, group.betas[1], group.betas[2]
  local correction2 = 1 - beta2 ^ step
  local size = lr / (1 - beta1 ^ step)
  local limit = 2 / (1 - beta2) - 1
  local length = limit - 2 * step * beta2 ^ step / correction2
  local rectified = length > 5 and ((length - 4) * (length - 2) * limit
    / ((limit - 4) * (limit - 2) * length)) ^ 0.5 or 0
  local decoupled = group.decoupled_weight_decay
  return {
    lr = size, beta1 = beta1, beta2 = beta2, eps = group.eps,
    weight_decay = decoupled and 0 or group.weight_decay,
    shrink = decoupled and 1 - lr * group.weight_decay or 1,
    by_mean = size * rectified * correction2 ^ 0.5,
  }
end

return elementwise_update(RAdam)
