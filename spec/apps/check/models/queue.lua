-- spec/apps/check/models/queue.lua: negatives from a queue of earlier batches (MoCo).
local lt = require "ltrain"
local nn = lt.nn
local Moco = lt.Module:extend "Moco"
function Moco:init()
  self.query, self.key = nn.Linear(8, 16), nn.Linear(8, 16)
  for _, parameter in self.key:named_parameters() do parameter.requires_grad = false end
  self:register_buffer("queue", nn.functional.normalize(lt.randn(32, 16)))
end
function Moco:training_step(batch)
  local normalize = nn.functional.normalize
  local q = normalize(self.query(batch[1]))
  local k = lt.no_grad(function() return normalize(self.key(batch[1])) end)
  local near, far = (q * k):sum(-1):unsqueeze(2), q:matmul(self.queue:clone():t())
  local logits = lt.cat({ near, far }, 2) / 0.1
  local n = q.shape[1]
  self.queue = lt.cat({ k:detach(), self.queue:narrow(1, 1, 32 - n) }, 1)
  return lt.cross_entropy(logits, lt.zeros({ n }, { dtype = "i64" }))
end
function Moco:configure_optimizers()
  return lt.optim.SGD(self.query:parameters(), { lr = 0.03, momentum = 0.9 })
end
local data = lt.data.TensorDataset(lt.randn(64, 8))
return { model = Moco(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
