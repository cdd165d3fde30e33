-- stdlib/optim/LBFGS.lua: L-BFGS: a quasi-Newton method with a limited memory (Liu and Nocedal
-- 1989), which calls the closure several times per step.
--
--   local lt = require "ltrain"
--   local w = lt.parameter(lt.tensor{-1.5, 2.0})
--   local optimizer = lt.optim.LBFGS({w}, {line_search_fn = "strong_wolfe"})
--   for _ = 1, 5 do
--     optimizer:step(function()
--       optimizer:zero_grad()
--       local loss = (1 - w[1])^2 + 100 * (w[2] - w[1]^2)^2
--       loss:backward()
--       return loss
--     end)
--   end
--   print(("%.3f %.3f"):format(w[1]:item(), w[2]:item()))
--   -- prints: 1.000 1.000
--
-- All parameters are one vector, so there is one group, and parameters and history are on one
-- device. In the Trainer the closure passed to optimizer_step runs training_step again.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local external_writes = require "ltrain.optim.external_writes"
local strong_wolfe = require "ltrain.optim.strong_wolfe"

local LBFGS = Optimizer:extend("LBFGS")

LBFGS.elementwise = false -- its directions are of all parameters together

LBFGS.__arguments = "params | "
  .. "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn "
  .. "maximize"

LBFGS.options = {
  lr = { type = "number", default = 1.0, min = 0, doc = "learning rate" },
  max_iter = { type = "integer", default = 20, min = 1, doc = "maximum number of iterations per "
    .. "step" },
  max_eval = { type = "integer", min = 1,
    doc = "maximum number of calls of the closure per step; by default 1.25 times max_iter" },
  tolerance_grad = { type = "number", default = 1e-7, min = 0,
    doc = "converged if no element of the gradient is larger" },
  tolerance_change = { type = "number", default = 1e-9, min = 0,
    doc = "converged if loss and parameters change by less" },
  history_size = { type = "integer", default = 100, min = 1, doc = "number of stored pairs" },
  line_search_fn = { type = "string", choices = { "strong_wolfe" },
    doc = "line search; without it the step size is lr" },
  maximize = { type = "boolean", default = false, doc = "ascend along the gradient" },
  initial_lr = { type = "number", doc = "set by schedulers" },
}

--- optim.LBFGS(net:parameters(), {line_search_fn = "strong_wolfe"})
function LBFGS:init(params, options)
  Optimizer.init(self, params, options)
  if #self.param_groups ~= 1 then
    errors.blame("optim.LBFGS: all parameters are one vector: give one group: got %d",
      #self.param_groups)
  end
end

-- The dtype of the vectors: f32, of f64 parameters f64.
local function dtype_of(params)
  for _, parameter in ipairs(params) do
    if parameter.dtype == "f64" then return "f64" end
  end
  return "f32"
end

local function dot(a, b) return a:matmul(b):item() end
local function largest(x) return x:abs():max():item() end

-- All gradients in one vector; of a parameter without one zeros.
local function flat_gradient(group)
  local parts, dtype = {}, dtype_of(group.params)
  for i, parameter in ipairs(group.params) do
    local gradient = parameter.grad or c.zeros_like(parameter)
    parts[i] = gradient:detach():to(dtype):reshape(-1)
  end
  local flat = c.cat(parts)
  return group.maximize and -flat or flat
end

-- Sets the parameters to `from` (copies of them), a step of `t` along `d` away.
local function place(group, from, t, d)
  local _ <close> = c.allow_update()
  local at = 1
  for i, parameter in ipairs(group.params) do
    local n = parameter:numel()
    local part = d:narrow(1, at, n):reshape(from[i].shape) * t
    parameter:copy_(from[i] + part)
    at = at + n
  end
end

local function copies(group)
  local list = {}
  for i, parameter in ipairs(group.params) do list[i] = parameter:detach():clone() end
  return list
end

-- The direction of an iteration: minus the gradient by the approximate inverse Hessian.
local function direction(state, gradient)
  local steps, changes = state.old_stps, state.old_dirs
  local q, al = -gradient, {}
  for i = #changes, 1, -1 do
    al[i] = dot(steps[i], q) * state.ro[i]
    q = q - changes[i] * al[i]
  end
  local d = q * state.H_diag
  for i = 1, #changes do
    d = d + steps[i] * (al[i] - dot(changes[i], d) * state.ro[i])
  end
  return d
end

-- Keeps the last step and the change of the gradient that it made.
local function remember(state, group, gradient)
  local y, s = gradient - state.prev_flat_grad, state.d * state.t
  local ys = dot(y, s)
  if ys <= 1e-10 then return end
  if #state.old_dirs == group.history_size then
    for _, list in ipairs { state.old_dirs, state.old_stps, state.ro } do table.remove(list, 1) end
  end
  table.insert(state.old_dirs, y)
  table.insert(state.old_stps, s)
  table.insert(state.ro, 1 / ys)
  state.H_diag = ys / dot(y, y)
end

-- One step: `closure` gives a loss as a number.
local Step = {}
Step.__index = Step

function Step:evaluate()
  self.loss, self.gradient = self.closure(), flat_gradient(self.group)
  self.evals, self.state.func_evals = self.evals + 1, self.state.func_evals + 1
end

-- Moves by a line search, or by lr.
function Step:move(t, slope)
  local group, d, from = self.group, self.state.d, copies(self.group)
  if not group.line_search_fn then
    place(group, from, t, d)
    if self.iterations ~= group.max_iter then self:evaluate() end
    return t
  end
  local function at(length)
    place(group, from, length, d)
    local loss = self.closure()
    local gradient = flat_gradient(group)
    return { t = length, f = loss, g = gradient, slope = dot(gradient, d) }
  end
  local start = { t = 0, f = self.loss, g = self.gradient, slope = slope }
  local point, count = strong_wolfe(at, t, start, largest(d), self.most - self.evals,
    group.tolerance_change)
  place(group, from, point.t, d)
  self.loss, self.gradient, self.evals = point.f, point.g, self.evals + count
  self.state.func_evals = self.state.func_evals + count
  return point.t
end

-- Whether there is nothing more to gain after a move from `before`.
function Step:is_over(before)
  local group, state = self.group, self.state
  return self.iterations == group.max_iter or self.evals >= self.most
    or largest(self.gradient) <= group.tolerance_grad
    or largest(state.d * state.t) <= group.tolerance_change
    or math.abs(self.loss - before) < group.tolerance_change
end

-- One iteration; true when it is the last.
function Step:iterate()
  local group, state = self.group, self.state
  self.iterations, state.n_iter = self.iterations + 1, state.n_iter + 1
  if state.n_iter == 1 then
    state.d, state.H_diag = -self.gradient, 1.0
    state.old_dirs, state.old_stps, state.ro = {}, {}, {}
  else
    remember(state, group, self.gradient)
    state.d = direction(state, self.gradient)
  end
  state.prev_flat_grad, state.prev_loss = self.gradient, self.loss
  local t = group.lr
  if state.n_iter == 1 then t = math.min(1, 1 / self.gradient:abs():sum():item()) * t end
  state.t = t
  local slope = dot(self.gradient, state.d)
  if slope > -group.tolerance_change then return true end
  local before = self.loss
  state.t = self:move(t, slope)
  return self:is_over(before)
end

--- Takes a step of up to max_iter iterations. The closure clears the gradients, computes the loss,
--- calls backward and returns the loss. Returns the first loss.
function LBFGS:step(closure)
  if not class.is_callable(closure) then
    errors.blame("optim.LBFGS: step needs a closure, which clears the gradients, computes the "
      .. "loss, calls backward and returns the loss: got %s", errors.show(closure))
  end
  external_writes.look(self)
  local group, first, proceed = self.param_groups[1], nil, nil
  local state = self.state[group.params[1]] or { func_evals = 0, n_iter = 0 }
  local step = setmetatable({ group = group, state = state, evals = 0, iterations = 0,
    most = group.max_eval or group.max_iter * 5 // 4 }, Step)
  function step.closure()
    local loss, may = closure()
    if first == nil then first, proceed = loss, may end
    local value = c.is_tensor(loss) and loss:item() or loss
    return group.maximize and -value or value
  end
  step:evaluate()
  if proceed ~= false and largest(step.gradient) > group.tolerance_grad then
    self.state[group.params[1]] = state
    while not step:iterate() do end
  end
  c.runtime.batch_done()
  return first
end

return LBFGS
