-- spec/apps/check/models/truth_table.lua: four inputs in all, which validation has too.
local lt = require "ltrain"
local nn = lt.nn
local net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function net:validation_step(batch)
  self:log("val_loss", lt.cross_entropy(self(batch[1]), batch[2]))
end
function net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-2 }) end
local function table_of(n)
  local x = lt.randint(0, 2, { n, 2 })
  return lt.data.TensorDataset(x:float(), x:sum(2):remainder(2))
end
return { model = net, data = {
  train = lt.data.DataLoader(table_of(64), { batch_size = 8, shuffle = true }),
  val = lt.data.DataLoader(table_of(16), { batch_size = 8 }),
} }
