-- spec/ports/actor_critic.lua: pytorch/examples: a policy and a value from one layer, with entropy.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleDict{affine = nn.Linear(4, 16), actor = nn.Linear(16, 3),
    critic = nn.Linear(16, 1)})
  local states, actions = formulas.wave{12, 4}, formulas.ids({12}, 3)
  local returns = formulas.returns(formulas.wave({12}, 1))
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 1e-2})
  return formulas.steps(optimizer, function()
    local h = net.affine(states):relu()
    local policy = lt.distributions.Categorical(net.actor(h):softmax(-1))
    local value = net.critic(h):squeeze(2)
    local advantage = returns - value:detach()
    return -(policy:log_prob(actions) * advantage):sum()
      + lt.smooth_l1_loss(value, returns, {reduction = "sum"}) - 0.1 * policy:entropy():sum()
  end)
end
