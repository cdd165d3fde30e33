-- spec/apps/check/models/rl.lua: a policy that makes its data itself.
local lt = require "ltrain"
local nn = lt.nn
local Policy = lt.Module:extend "Policy"
function Policy:init() self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)) end
function Policy:forward(s) local l = self.net(s) return l end
function Policy:training_step()
  local states = lt.randn(32, 4)
  local logp = self(states):log_softmax(-1)
  local actions = logp:exp():multinomial(1)
  local rewards = states:select(2, 1):unsqueeze(2):gt(0):float() - 0.5
  local loss = -(logp:gather(2, actions) * rewards):mean()
  self:log("loss", loss)
  return loss
end
function Policy:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local steps = lt.data.TensorDataset(lt.arange(0, 64))
return {model = Policy(), data = lt.data.DataLoader(steps, {batch_size = 1})}
