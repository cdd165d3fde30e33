-- spec/ports/autoencoder.lua: Lightning's first model.
local lt = require "ltrain"
local nn = lt.nn

local LitAutoEncoder = lt.Module:extend("LitAutoEncoder")

function LitAutoEncoder:init()
  self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))
  self.decoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))
end

function LitAutoEncoder:training_step(batch)
  local x = batch[1]:flatten(2)
  local loss = lt.mse_loss(self.decoder(self.encoder(x)), x)
  return loss
end

function LitAutoEncoder:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 1e-2})
end

return function(formulas)
  local data = lt.data.TensorDataset(formulas.wave{24, 1, 8, 8})
  return formulas.fit(formulas.fill(LitAutoEncoder()), lt.data.DataLoader(data, {batch_size = 8}))
end
