-- stdlib/optim/Adafactor.lua: Adafactor: steps divided by the root of the running mean of squares,
-- which is factored into means of rows and columns for matrices (Shazeer and Stern 2018).
--
-- As in PyTorch, steps are relative to the scale of the parameter, lr is an upper bound of the
-- relative step, and there is no momentum.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"
local options = require "ltrain.optim.options"

local Adafactor = Optimizer:extend("Adafactor")

Adafactor.elementwise = false -- its means are of rows and columns

local function check_eps(eps)
  local first, second = eps[1] or 0, eps[2]
  if type(first) ~= "number" or first < 0 or type(second) ~= "number" or second < 0 then
    return ("must be two numbers, not negative, the first may be false: got {%s, %s}")
      :format(eps[1], second)
  end
end

Adafactor.__arguments = "params | lr beta2_decay eps d weight_decay"

Adafactor.options = options {
  lr = 1e-2,
  beta2_decay = { type = "number", default = -0.8, max = 0,
    doc = "the decay rate of the running means at step n is 1 - n ^ this" },
  eps = { type = "table", default = { false, 1e-3 }, check = check_eps,
    doc = "lower bounds of the root mean square (false: the dtype's epsilon) and of the scale of "
      .. "the parameter" },
  d = { type = "number", default = 1.0, min = 1,
    doc = "steps with a root mean square above this are scaled down to it" },
  weight_decay = { type = "number", default = 0, min = 0,
    doc = "this times lr times the weight is subtracted" },
  maximize = true, initial_lr = true,
}

local EPSILON <const> = { f64 = 2.0 ^ -52, f32 = 2.0 ^ -23, f16 = 2.0 ^ -10, bf16 = 2.0 ^ -7 }

local function empty() return { step = 0 } end

-- before + weight * (now - before), where the first step has no before.
local function running(before, now, weight)
  return before and before:lerp(now, weight) or now
end

-- The running mean of squares of the gradient; of a matrix the product of those of its rows and
-- columns, by the mean of all.
local function mean_square(state, gradient, weight, eps)
  local square = gradient * gradient
  if gradient.ndim < 2 then
    state.variance = running(state.variance, square, weight)
    return state.variance
  end
  state.row_var = running(state.row_var, square:mean(-1, { keepdim = true }), weight)
  state.col_var = running(state.col_var, square:mean(-2, { keepdim = true }), weight)
  local whole = state.row_var:mean(-2, { keepdim = true }):clamp { min = eps }
  return state.row_var:matmul(state.col_var) / whole
end

local function root_mean_square(x) return x:norm() / x:numel() ^ 0.5 end

local function step(self, group, parameter, grad, state)
  local dtype = self.state_dtype(parameter)
  local gradient, x = grad:to(dtype), parameter:detach():to(dtype)
  if group.maximize then gradient = -gradient end
  state.step = state.step + 1
  local eps = group.eps[1] or EPSILON[parameter.dtype]
  local square = mean_square(state, gradient, state.step ^ group.beta2_decay, eps)
  local update = gradient * square:clamp { min = eps * eps }:rsqrt()
  local size = root_mean_square(x):clamp { min = group.eps[2] }
  local rate = size * math.min(group.lr, state.step ^ -0.5)
  local shrunk = x * (1 - group.lr * group.weight_decay)
  local denominator = (root_mean_square(update) / group.d):clamp { min = 1 }
  parameter:copy_(shrunk - update * (rate / denominator))
end

function Adafactor:update(group)
  local _ <close> = c.no_grad()
  local params, grads, states = self:active(group, empty)
  for i, parameter in ipairs(params) do
    if parameter:numel() > 0 then step(self, group, parameter, grads[i], states[i]) end
  end
end

return Adafactor
