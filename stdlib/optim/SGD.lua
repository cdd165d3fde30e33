-- stdlib/optim/SGD.lua: stochastic gradient descent, with momentum.
--
-- Momentum: B. Polyak, 1964; Nesterov's form: I. Sutskever and others, 2013.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local SGD = Optimizer:extend("SGD")

SGD.__arguments = "params | lr momentum dampening weight_decay nesterov maximize"

SGD.options = {
  lr = { type = "number", default = 1e-3, min = 0, doc = "learning rate" },
  momentum = { type = "number", default = 0, min = 0, doc = "momentum factor" },
  dampening = { type = "number", default = 0, doc = "dampening of the momentum" },
  weight_decay = { type = "number", default = 0, min = 0,
                   doc = "L2 penalty: this times the weight is added to the gradient" },
  nesterov = { type = "boolean", default = false, doc = "Nesterov momentum" },
  maximize = { type = "boolean", default = false, doc = "ascend along the gradient" },
  initial_lr = { type = "number", doc = "set by schedulers" },
}

--- Whether each element is updated independently, so that slices of parameters can be updated
--- separately.
SGD.elementwise = true

--- The state of a parameter, for load_state_dict to check.
SGD.slots = { momentum_buffer = "tensor?" }

--- optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
function SGD:init(params, options)
  Optimizer.init(self, params, options)
  self._made = setmetatable({}, { __mode = "k" }) -- parameter -> buffer
  for _, group in ipairs(self.param_groups) do
    if group.nesterov and (group.momentum <= 0 or group.dampening ~= 0) then
      errors.blame("optim.SGD: nesterov needs momentum above 0 and dampening 0: got %s and %s",
        group.momentum, group.dampening)
    end
  end
end

local function empty_state() return {} end

-- A buffer that begins with a gradient; a step that is left out writes none. One that was made for
-- a step of which the host does not know whether it was left out is the same in all of its forms.
local function new_buffer(self, parameter)
  local options = { dtype = self.state_dtype(parameter) }
  if not self:found_inf() then return c.empty_like(parameter, options) end
  self._made[parameter] = self._made[parameter] or c.zeros_like(parameter, options)
  return self._made[parameter]
end

function SGD:update(group)
  local params, grads, states = self:active(group, group.momentum ~= 0 and empty_state)
  local options = { lr = group.lr, momentum = group.momentum, dampening = group.dampening,
                    weight_decay = group.weight_decay, nesterov = group.nesterov,
                    maximize = group.maximize }
  if group.momentum == 0 then
    if #params > 0 then c.sgd_step(self:checked(self.join(params, grads), options), options) end
    return
  end
  for _, first in ipairs { false, true } do
    local p, g, buffers = {}, {}, {}
    for i, state in ipairs(states) do
      if (state.momentum_buffer == nil) == first then
        local n = #p + 1
        p[n], g[n] = params[i], grads[i]
        buffers[n] = state.momentum_buffer or new_buffer(self, params[i])
      end
    end
    options.first = first
    if #p > 0 then c.sgd_step(self:checked(self.join(p, g, buffers), options), options) end
    for n, buffer in ipairs(first and buffers or {}) do
      local state = self.state[p[n]]
      self:remember(state, "momentum_buffer")
      state.momentum_buffer = buffer
    end
  end
end

SGD.checked_update = SGD.update

return SGD
