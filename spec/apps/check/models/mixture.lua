-- spec/apps/check/models/mixture.lua: experts behind a gate.
local lt = require "ltrain"
local nn = lt.nn
local Moe = lt.Module:extend "Moe"
function Moe:init()
  self.gate = nn.Linear(6, 3)
  self.experts = nn.ModuleList{nn.Linear(6, 1), nn.Linear(6, 1), nn.Linear(6, 1)}
end
function Moe:forward(x)
  local w = self.gate(x):softmax(-1)
  local ys = {}
  for i, e in ipairs(self.experts) do ys[i] = e(x) end
  local y = (lt.cat(ys, 2) * w):sum(2)
  return y
end
function Moe:training_step(batch)
  local loss = lt.mse_loss(self(batch[1]), batch[2])
  return loss
end
function Moe:configure_optimizers() return lt.optim.RMSprop(self:parameters(), {lr = 1e-3}) end
local x = lt.randn(64, 6)
local loader = lt.data.DataLoader(lt.data.TensorDataset(x, x:abs():sum(2)), {batch_size = 8,
  shuffle = true})
return {model = Moe(), data = loader}
