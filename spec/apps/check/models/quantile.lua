-- spec/apps/check/models/quantile.lua: a regression of three quantiles (pinball loss).
local lt = require "ltrain"
local nn = lt.nn
local QUANTILES <const> = lt.tensor { 0.1, 0.5, 0.9 }
local Net = lt.Module:extend "Net"
function Net:init()
  self.net = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(32, 3))
end
function Net:forward(x) local y = self.net(x) return y end
function Net:training_step(batch)
  local error = batch[2]:unsqueeze(2) - self(batch[1])
  local loss = lt.maximum(QUANTILES * error, (QUANTILES - 1) * error):mean()
  self:log("loss", loss)
  return loss
end
function Net:configure_optimizers()
  local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1, momentum = 0.9, nesterov = true })
  local steps = self.trainer.estimated_stepping_batches
  return { optimizer = optimizer, lr_scheduler = { interval = "step",
    scheduler = lt.optim.OneCycleLR(optimizer, 0.1, { total_steps = steps }) } }
end
local x = lt.randn(64, 6) * 40
local data = lt.data.TensorDataset(x, x:sum(2) / 100 + lt.randn(64))
return { model = Net(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }),
  trainer = { max_epochs = 5 } }
