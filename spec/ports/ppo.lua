-- spec/ports/ppo.lua: proximal policy optimization: a ratio that is clipped, Gaussian actions.
local lt = require "ltrain"
local nn = lt.nn

local Policy = lt.Module:extend("Policy")

function Policy:init()
  self.mean = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
  self.log_std = lt.parameter(lt.zeros(2))
end

function Policy:forward(x) return lt.distributions.Normal(self.mean(x), self.log_std:exp()) end

return function(formulas)
  local policy, states = formulas.fill(Policy()), formulas.wave{16, 3}
  local actions, advantage = formulas.wave({16, 2}, 1), formulas.wave({16}, 2)
  local old = policy(states):log_prob(actions):sum(2):detach()
  local optimizer = lt.optim.Adam(policy:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    local now = policy(states)
    local ratio = (now:log_prob(actions):sum(2) - old):exp()
    local clipped = ratio:clamp(0.8, 1.2) * advantage
    return -lt.minimum(ratio * advantage, clipped):mean() - 0.01 * now:entropy():mean()
  end)
end
