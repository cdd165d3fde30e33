-- stdlib/optim/Muon.lua: Muon: momentum orthogonalized by Newton-Schulz iterations (Jordan et al.
-- 2024), for the weight matrices of hidden layers.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Sequential(lt.nn.Linear(8, 16), lt.nn.ReLU(), lt.nn.Linear(16, 2))
--   local matrices, others = {}, {}
--   for _, parameter in ipairs(net:parameters()) do
--     local list = parameter.ndim == 2 and matrices or others
--     list[#list + 1] = parameter
--   end
--   local muon = lt.optim.Muon(matrices, {lr = 0.02})
--   local adamw = lt.optim.AdamW(others)
--   print(#matrices, #others)
--   -- prints: 2	2
--
-- As in PyTorch, the iterations are computed in bf16, for f64 parameters in f64. Train embeddings,
-- biases and the weights of norms with AdamW.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local options = require "ltrain.optim.options"

local Muon = Optimizer:extend("Muon")

Muon.elementwise = false -- it orthogonalizes whole matrices

Muon.__arguments = "params | "
  .. "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"

local function check_coefficients(list)
  for i = 1, 3 do
    if #list ~= 3 or type(list[i]) ~= "number" then return "must be three numbers" end
  end
end

Muon.options = options {
  lr = 1e-3,
  weight_decay = { type = "number", default = 0.1, min = 0,
    doc = "this times lr times the weight is subtracted" },
  momentum = { type = "number", default = 0.95, min = 0, doc = "momentum factor" },
  nesterov = { type = "boolean", default = true, doc = "Nesterov momentum" },
  ns_coefficients = { type = "table", default = { 3.4445, -4.7750, 2.0315 },
    check = check_coefficients, doc = "coefficients of the polynomial of an iteration" },
  eps = { type = "number", default = 1e-7, min = 0, doc = "lower bound of the norm" },
  ns_steps = { type = "integer", default = 5, min = 1, max = 99, doc = "iterations" },
  adjust_lr_fn = { type = "string", default = "original",
    choices = { "original", "match_rms_adamw", "spectral_unclamped" },
    doc = "how lr is adjusted for the shape of a matrix" },
  maximize = true, initial_lr = true,
}

--- The state of a parameter, for load_state_dict to check.
Muon.slots = { momentum_buffer = "tensor" }

-- What lr is multiplied by, for a matrix of a rows and b columns.
local ADJUST <const> = {
  original = function(a, b) return math.sqrt(math.max(1, a / b)) end,
  match_rms_adamw = function(a, b) return 0.2 * math.sqrt(math.max(a, b)) end,
  spectral_unclamped = function(a, b) return math.sqrt(a / b) end,
}

function Muon:add_param_group(group)
  Optimizer.add_param_group(self, group)
  local new = self.param_groups[#self.param_groups]
  for i, parameter in ipairs(new.params) do
    if parameter.ndim ~= 2 then
      errors.blame("optim.Muon: parameters must be matrices: '%s' is %s: give the others to AdamW",
        new.names[i], errors.show_shape(parameter))
    end
  end
end

local function empty() return {} end

-- A matrix near to `update` whose singular values are near to 1.
local function orthogonal(update, group)
  local a, b, k = table.unpack(group.ns_coefficients)
  local x = update.dtype == "f64" and update or update:to "bf16"
  local tall = x.shape[1] > x.shape[2]
  if tall then x = x:t() end
  x = x / x:norm():clamp { min = group.eps }
  for _ = 1, group.ns_steps do
    local gram = x:matmul(x:t())
    local polynomial = c.addmm(gram, gram, gram, { beta = b, alpha = k })
    x = c.addmm(x, polynomial, x, { beta = a })
  end
  return tall and x:t() or x
end

-- from + weight * (to - from), exact at both ends.
local function lerp(from, to, weight)
  if weight < 0.5 then return from + (to - from) * weight end
  return to - (to - from) * (1 - weight)
end

local function step(self, group, parameter, grad, state)
  local dtype = self.state_dtype(parameter)
  local gradient = group.maximize and -grad:to(dtype) or grad:to(dtype)
  local before = state.momentum_buffer or c.zeros_like(parameter, { dtype = dtype })
  local momentum = lerp(before, gradient, 1 - group.momentum)
  state.momentum_buffer = momentum
  local update = group.nesterov and lerp(gradient, momentum, group.momentum) or momentum
  local rows, columns = parameter.shape[1], parameter.shape[2]
  local lr = group.lr * ADJUST[group.adjust_lr_fn](rows, columns)
  local shrunk = parameter:to(dtype) * (1 - group.lr * group.weight_decay)
  parameter:copy_(shrunk - orthogonal(update, group):to(dtype) * lr)
end

function Muon:update(group)
  local _ <close> = c.no_grad()
  local params, grads, states = self:active(group, empty)
  for i, parameter in ipairs(params) do step(self, group, parameter, grads[i], states[i]) end
end

return Muon
