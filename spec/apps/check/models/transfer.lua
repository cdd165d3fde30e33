-- spec/apps/check/models/transfer.lua: a frozen backbone in evaluation mode.
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.backbone = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
  for _, p in self.backbone:named_parameters() do p.requires_grad = false end
  self.backbone:eval()
  self.head = nn.Linear(16, 2)
end
function Net:train(on)
  lt.Module.train(self, on)
  self.backbone:eval()
  return self
end
function Net:forward(x)
  local h = lt.no_grad(function() return self.backbone(x) end)
  local y = self.head(h)
  return y
end
function Net:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("loss", loss)
  return loss
end
function Net:validation_step(batch)
  self:log("acc", self(batch[1]):argmax(2):eq(batch[2]):float():mean())
end
function Net:configure_optimizers() return lt.optim.Adam(self.head:parameters(), {lr = 1e-3}) end
local function make(n) return lt.data.DataLoader(lt.data.TensorDataset(lt.randn(n, 8),
  lt.randint(0, 2, {n})), {batch_size = 8, shuffle = n > 20}) end
return {model = Net(), data = {train = make(64), val = make(16)},
  trainer = {callbacks = {lt.callbacks.ModelCheckpoint{monitor = "acc", mode = "max"}}}}
