-- spec/apps/check/models/siamese.lua: one tower for three inputs, a loss of triplets.
local lt = require "ltrain"
local nn = lt.nn
local Siamese = lt.Module:extend "Siamese"
function Siamese:init()
  self.tower = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16))
end
function Siamese:forward(x)
  local code = self.tower(x)
  return nn.functional.normalize(code)
end
function Siamese:training_step(batch)
  local anchor, same, other = self(batch[1]), self(batch[2]), self(batch[3])
  local near, far = (anchor - same):square():sum(-1), (anchor - other):square():sum(-1)
  local loss = (near - far + 0.5):relu():mean()
  self:log("loss", loss)
  return loss
end
function Siamese:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
local x = lt.randn(64, 1, 8, 8)
local data = lt.data.TensorDataset(x, x + 0.1 * lt.randn_like(x), lt.randn(64, 1, 8, 8))
return { model = Siamese(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
