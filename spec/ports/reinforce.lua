-- spec/ports/reinforce.lua: pytorch/examples: policy gradients.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local policy = formulas.fill(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)))
  local states, actions = formulas.wave{12, 4}, formulas.ids({12}, 3)
  local returns = formulas.returns(formulas.wave({12}, 1))
  local optimizer = lt.optim.Adam(policy:parameters(), {lr = 1e-2})
  return formulas.steps(optimizer, function()
    local of_policy = lt.distributions.Categorical{logits = policy(states)}
    return -(of_policy:log_prob(actions) * returns):sum()
  end)
end
