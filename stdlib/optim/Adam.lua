-- stdlib/optim/Adam.lua: Adam (Kingma and Ba 2015): the running mean of the gradient divided by the
-- root of that of its square.

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local Adam = Optimizer:extend("Adam")

Adam.__arguments = "params | lr betas eps weight_decay amsgrad"

Adam.options = options {
  lr = 1e-3, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = true,
  amsgrad = { type = "boolean", default = false,
    doc = "divide by the root of the maximum of the running means (Reddi et al. 2018)" },
  decoupled_weight_decay = true, maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Adam.slots = { step = "count", exp_avg = "tensor", exp_avg_sq = "tensor",
               max_exp_avg_sq = "tensor?" }

-- optim.Adam(net:parameters(), {lr = 1e-3}): init is the Optimizer's.

local USUAL <const>, AMSGRAD <const> = { "exp_avg", "exp_avg_sq" },
  { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" }

function Adam:_rule(group)
  if group.amsgrad then return "amsgrad_step", AMSGRAD end
  return "adam_step", USUAL
end

-- Whether weight decay is apart from the gradient: `decoupled` is true in AdamW.
local function is_decoupled(self, group)
  return self.decoupled or group.decoupled_weight_decay
end

function Adam:_numbers(group, step)
  local beta1, beta2 = group.betas[1], group.betas[2]
  local decoupled, decay = is_decoupled(self, group), group.weight_decay
  local numbers = { lr = group.lr, beta1 = beta1, beta2 = beta2, eps = group.eps }
  if not group.amsgrad then
    numbers.step, numbers.weight_decay, numbers.decoupled = step, decay, decoupled
    return numbers
  end
  numbers.lr, numbers.root = group.lr / (1 - beta1 ^ step), (1 - beta2 ^ step) ^ -0.5
  numbers.weight_decay = decoupled and 0 or decay
  numbers.shrink = decoupled and 1 - group.lr * decay or 1
  return numbers
end

--- Whether weight decay is decoupled from the gradient in any case (AdamW).
Adam.decoupled = false

return elementwise_update(Adam)
