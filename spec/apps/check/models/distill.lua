-- spec/apps/check/models/distill.lua: a frozen teacher outside of the module.
local lt = require "ltrain"
local nn = lt.nn
local teacher = nn.Linear(6, 3)
teacher:eval()
local Student = lt.Module:extend "Student"
function Student:init() self.net = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)) end
function Student:forward(x) local y = self.net(x) return y end
function Student:training_step(batch)
  local target = lt.no_grad(function() return teacher(batch[1]):softmax(-1) end)
  local loss = lt.kl_div(self(batch[1]):log_softmax(-1), target, {reduction = "batchmean"})
  return loss
end
function Student:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(64, 6)), {batch_size = 8,
  shuffle = true})
return {model = Student(), data = loader}
