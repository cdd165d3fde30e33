-- spec/ports/dqn.lua: deep Q-learning: a target network that follows, smooth L1, AMSGrad.
local lt = require "ltrain"
local nn = lt.nn

local function network()
  return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
    nn.Linear(32, 2))
end

return function(formulas)
  local policy, target, losses = formulas.fill(network()), network(), {}
  target:load_state_dict(policy:state_dict())
  local state, after = formulas.wave{16, 4}, formulas.wave({16, 4}, 1)
  local action, reward = formulas.ids({16, 1}, 2), formulas.wave({16}, 2) + 1
  local final = formulas.ids({16}, 5):eq(0)
  local optimizer = lt.optim.AdamW(policy:parameters(), {lr = 5e-3, amsgrad = true})
  local followers = target:parameters()
  for step = 1, 20 do
    local value = policy(state):gather(2, action):squeeze(2)
    local best = lt.no_grad(function() return target(after):amax(2):masked_fill(final, 0) end)
    local loss = lt.smooth_l1_loss(value, reward + 0.99 * best)
    optimizer:zero_grad()
    loss:backward()
    nn.clip_grad_value_(policy:parameters(), 100)
    optimizer:step()
    lt.no_grad(function()
      for k, p in ipairs(policy:parameters()) do followers[k]:lerp_(p, 0.05) end
    end)
    losses[step] = loss:item()
  end
  return losses
end
