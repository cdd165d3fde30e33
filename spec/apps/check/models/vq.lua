-- spec/apps/check/models/vq.lua: codes of a code book, with gradients straight through (VQ-VAE).
local lt = require "ltrain"
local nn = lt.nn
local Vq = lt.Module:extend "Vq"
function Vq:init()
  self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
  self.decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 12), nn.Sigmoid())
  self.book = nn.Embedding(16, 4)
end
function Vq:training_step(batch)
  local x = batch[1]
  local code = self.encoder(x)
  local distance = (code:unsqueeze(2) - self.book.weight:unsqueeze(1)):square():sum(-1)
  local chosen = self.book(distance:argmin(-1))
  local through = code + (chosen - code):detach()
  local rebuilt = self.decoder(through)
  return lt.mse_loss(rebuilt, x) + lt.mse_loss(chosen, code:detach())
    + 0.25 * lt.mse_loss(code, chosen:detach())
end
function Vq:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
local data = lt.data.TensorDataset(lt.rand(64, 12))
return { model = Vq(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
