-- stdlib/optim/NAdam.lua: Adam with Nesterov momentum (Dozat 2016).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local NAdam = Optimizer:extend("NAdam")

NAdam.__arguments = "params | lr betas eps weight_decay momentum_decay decoupled_weight_decay"

NAdam.options = options {
  lr = 2e-3, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = true,
  momentum_decay = { type = "number", default = 4e-3, min = 0,
    doc = "how fast the momentum approaches betas[1]" },
  decoupled_weight_decay = true, maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
NAdam.slots = { step = "count", mu_product = "number", exp_avg = "tensor", exp_avg_sq = "tensor" }

--- The slot in which parameters at the same step may differ.
NAdam.counted = "mu_product"

local SLOTS <const> = { "exp_avg", "exp_avg_sq" }

function NAdam:_rule() return "nadam_step", SLOTS end

function NAdam:_numbers(group, step, state)
  local lr, beta1, beta2 = group.lr, group.betas[1], group.betas[2]
  local function momentum(n) return beta1 * (1 - 0.5 * 0.96 ^ (n * group.momentum_decay)) end
  local mu, next_mu = momentum(step), momentum(step + 1)
  local product = (state.mu_product or 1.0) * mu
  local decoupled = group.decoupled_weight_decay
  return {
    lr = lr, beta1 = beta1, beta2 = beta2, eps = group.eps, root = (1 - beta2 ^ step) ^ -0.5,
    weight_decay = decoupled and 0 or group.weight_decay,
    shrink = decoupled and 1 - lr * group.weight_decay or 1,
    by_grad = lr * (1 - mu) / (1 - product),
    by_mean = lr * next_mu / (1 - product * next_mu),
  }, { mu_product = product }
end

return elementwise_update(NAdam)
