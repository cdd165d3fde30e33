-- stdlib/optim/Adam.lua: Adam (Kingma and Ba 2015): the running mean of the gradient divided by the
-- root of that of its square.

local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"

local Adam = Optimizer:extend("Adam")

local function check_betas(betas)
  for i = 1, 2 do
    local beta = betas[i]
    if type(beta) ~= "number" or beta < 0 or beta >= 1 then
      return "must be two numbers in 0..1, 1 excluded"
    end
  end
end

Adam.options = {
  lr = { type = "number", default = 1e-3, min = 0, doc = "learning rate" },
  betas = { type = "table", default = { 0.9, 0.999 }, check = check_betas,
            doc = "decay rates of the running means" },
  eps = { type = "number", default = 1e-8, min = 0, doc = "added to the denominator" },
  weight_decay = { type = "number", default = 0, min = 0,
                   doc = "L2 penalty: this times the weight is added to the gradient" },
  initial_lr = { type = "number", doc = "set by schedulers" },
}

--- A slice of a parameter steps as it would within the whole.
Adam.elementwise = true

--- The state of a parameter, for load_state_dict to check.
Adam.slots = { step = "count", exp_avg = "tensor", exp_avg_sq = "tensor" }

--- Whether weight decay is decoupled from the gradient (AdamW).
Adam.decoupled = false

-- optim.Adam(net:parameters(), {lr = 1e-3}): init is the Optimizer's.

local function fresh(p)
  local options = { dtype = Optimizer.state_dtype(p) }
  return { step = 0, exp_avg = c.zeros_like(p, options), exp_avg_sq = c.zeros_like(p, options) }
end

-- Places of the parameters by the number of the step they are at; mostly all are at the same.
local function by_step(states)
  local steps, places = {}, {}
  for i, state in ipairs(states) do
    local step = state.step + 1
    if not places[step] then
      places[step] = {}
      steps[#steps + 1] = step
    end
    table.insert(places[step], i)
  end
  return steps, places
end

function Adam:update(group)
  local params, grads, states = self:active(group, fresh)
  local steps, places = by_step(states)
  local options = { lr = group.lr, beta1 = group.betas[1], beta2 = group.betas[2],
                    eps = group.eps, weight_decay = group.weight_decay,
                    decoupled = self.decoupled }
  local noted = self._last
  for _, step in ipairs(steps) do
    local p, g, m, v = {}, {}, {}, {}
    for n, i in ipairs(places[step]) do
      p[n], g[n], m[n], v[n] = params[i], grads[i], states[i].exp_avg, states[i].exp_avg_sq
    end
    options.step = step
    c.adam_step(self:checked(self.join(p, g, m, v), options), options)
    for _, i in ipairs(places[step]) do
      if noted then self:remember(states[i], "step") end
      states[i].step = step
    end
  end
end

Adam.checked_update = Adam.update

return Adam
