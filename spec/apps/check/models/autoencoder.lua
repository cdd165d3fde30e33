-- spec/apps/check/models/autoencoder.lua: inputs that are the targets.
local lt = require "ltrain"
local nn = lt.nn
local Auto = lt.Module:extend "Auto"
function Auto:init()
  self.encoder = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
  self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 16))
end
function Auto:forward(x) local y = self.decoder(self.encoder(x)) return y end
function Auto:training_step(batch)
  local x = batch[1]
  local loss = lt.mse_loss(self(x), x)
  return loss
end
function Auto:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 1e-3}) end
local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(64, 16)), {batch_size = 8,
  shuffle = true})
return {model = Auto(), data = loader}
