-- stdlib/optim/ASGD.lua: averaged SGD: SGD with a decaying learning rate, and the average of the
-- parameters over the steps (Polyak and Juditsky 1992): state[parameter].ax.

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local ASGD = Optimizer:extend("ASGD")

ASGD.__arguments = "params | lr lambd alpha t0 weight_decay (foreach) maximize"

ASGD.options = options {
  lr = 1e-2,
  lambd = { type = "number", default = 1e-4, min = 0,
    doc = "decay: this times the learning rate times the weight is subtracted" },
  alpha = { type = "number", default = 0.75, min = 0,
    doc = "the learning rate after n steps is lr / (1 + lambd * lr * n) ^ alpha" },
  t0 = { type = "number", default = 1e6, doc = "the step after which averaging begins" },
  weight_decay = true, maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
ASGD.slots = { step = "count", eta = "number", mu = "number", ax = "tensor" }

--- The slot in which parameters at the same step may differ.
ASGD.counted = "eta"

local SLOTS <const> = { "ax" }

function ASGD:_rule() return "asgd_step", SLOTS end

-- The rate and the weight of a step are those that the step before computed, as in PyTorch.
function ASGD:_numbers(group, step, state)
  local eta, mu = state.eta or group.lr, state.mu or 1.0
  return { lr = eta, shrink = 1 - group.lambd * eta, by_mean = mu,
           weight_decay = group.weight_decay },
    { eta = group.lr / (1 + group.lambd * group.lr * step) ^ group.alpha,
      mu = 1 / math.max(1, step - group.t0) }
end

return elementwise_update(ASGD)
