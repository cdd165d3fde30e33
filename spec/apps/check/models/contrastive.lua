-- spec/apps/check/models/contrastive.lua: two towers; samples are compared with each other on
-- purpose.
local lt = require "ltrain"
local nn = lt.nn
local Clip = lt.Module:extend "Clip"
function Clip:init()
  self.a, self.b = nn.Linear(8, 4), nn.Linear(6, 4)
  self.scale = lt.parameter(lt.zeros(1))
end
function Clip:training_step(batch)
  local u = lt.nn.functional.normalize(self.a(batch[1]), {dim = 2})
  local v = lt.nn.functional.normalize(self.b(batch[2]), {dim = 2})
  local logits = u:matmul(v:t()) * self.scale:exp()
  local same = lt.arange(0, logits.shape[1])
  local loss = (lt.cross_entropy(logits, same) + lt.cross_entropy(logits:t(), same)) / 2
  return loss
end
function Clip:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local x = lt.randn(64, 8)
local loader = lt.data.DataLoader(lt.data.TensorDataset(x, x[{lt.all, {1, 6}}]),
  {batch_size = 16, shuffle = true})
return {model = Clip(), data = loader}
