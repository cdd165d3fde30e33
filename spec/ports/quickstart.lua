-- spec/ports/quickstart.lua: Quickstart: an MLP on images, by a Trainer over a DataLoader.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32),
    nn.ReLU(), nn.Linear(32, 10))
end

function Net:training_step(batch)
  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])
  return loss
end

function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end

return function(formulas)
  local data = lt.data.TensorDataset(formulas.wave{32, 1, 8, 8}, formulas.ids({32}, 10))
  return formulas.fit(formulas.fill(Net()), lt.data.DataLoader(data, {batch_size = 8}))
end
