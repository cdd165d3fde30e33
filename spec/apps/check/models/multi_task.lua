-- spec/apps/check/models/multi_task.lua: two tasks on one body, weighted by learnt uncertainties.
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.body = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU())
  self.class, self.value = nn.Linear(32, 4), nn.Linear(32, 1)
  self.weights = lt.parameter(lt.zeros(2))
end
function Net:training_step(batch)
  local hidden = self.body(batch.x)
  local one = lt.cross_entropy(self.class(hidden), batch.class)
  local two = lt.mse_loss(self.value(hidden):squeeze(-1), batch.value)
  local scale = (-self.weights):exp()
  local loss = scale[1] * one + scale[2] * two + self.weights:sum()
  self:log_dict { class = one, value = two }
  return { loss = loss }
end
function Net:validation_step(batch)
  local hidden = self.body(batch.x)
  self:log("val_loss", lt.cross_entropy(self.class(hidden), batch.class))
end
function Net:configure_optimizers()
  return lt.optim.AdamW({ { params = self.body:parameters(), lr = 1e-4 },
    { params = { self.class.weight, self.class.bias, self.value.weight, self.value.bias } },
    { params = { self.weights }, lr = 1e-2, weight_decay = 0 } }, { lr = 1e-3 })
end
local function data(n)
  return lt.data.TensorDataset { x = lt.randn(n, 8), class = lt.randint(0, 4, { n }),
    value = lt.randn(n) }
end
return { model = Net(), data = {
  train = lt.data.DataLoader(data(64), { batch_size = 8, shuffle = true }),
  val = lt.data.DataLoader(data(16), { batch_size = 8 }) } }
