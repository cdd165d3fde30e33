-- stdlib/optim/Rprop.lua: Rprop: steps in the direction of the sign of the gradient, with a step
-- size per element that grows while the sign is unchanged and shrinks when it changes (Riedmiller
-- and Braun 1993).

local Optimizer = require "ltrain.optim.Optimizer"
local elementwise_update = require "ltrain.optim.elementwise_update"
local options = require "ltrain.optim.options"

local Rprop = Optimizer:extend("Rprop")

local function are_numbers(pair)
  return #pair == 2 and type(pair[1]) == "number" and type(pair[2]) == "number"
end

local function check_etas(etas)
  if not are_numbers(etas) or not (0 < etas[1] and etas[1] < 1 and 1 < etas[2]) then
    return ("must be two numbers, 0 < the first < 1 < the second: got {%s, %s}")
      :format(etas[1], etas[2])
  end
end

local function check_sizes(sizes)
  if not are_numbers(sizes) or not (0 <= sizes[1] and sizes[1] <= sizes[2]) then
    return ("must be two numbers, 0 <= the first <= the second: got {%s, %s}")
      :format(sizes[1], sizes[2])
  end
end

Rprop.__arguments = "params | lr etas step_sizes"

Rprop.options = options {
  lr = 1e-2,
  etas = { type = "table", default = { 0.5, 1.2 }, check = check_etas,
    doc = "factors of the step size if the sign changes, and if it does not" },
  step_sizes = { type = "table", default = { 1e-6, 50.0 }, check = check_sizes,
    doc = "minimum and maximum step size" },
  maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Rprop.slots = { step = "count", prev = "tensor", step_size = "tensor" }

local SLOTS <const> = { "prev", "step_size" }

function Rprop:_rule() return "rprop_step", SLOTS end

function Rprop:_initial(group, slot) return slot == "step_size" and group.lr or 0 end

function Rprop:_numbers(group)
  return { lr = group.lr, beta1 = group.etas[1], beta2 = group.etas[2],
           eps = group.step_sizes[1], root = group.step_sizes[2] }
end

return elementwise_update(Rprop)
