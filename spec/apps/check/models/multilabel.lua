-- spec/apps/check/models/multilabel.lua: several labels a sample, weighted.
local lt = require "ltrain"
local net = lt.nn.Sequential(lt.nn.Linear(5, 8), lt.nn.ReLU(), lt.nn.Dropout(0.5),
  lt.nn.Linear(8, 4))
function net:training_step(batch)
  local logits = self(batch[1])
  local each = lt.binary_cross_entropy_with_logits(logits, batch[2], {reduction = "none"})
  local loss = (each * lt.tensor{1.0, 2.0, 1.0, 0.5}):mean()
  return loss
end
function net:validation_step(batch)
  self:log("f1", lt.nn.functional.sigmoid(self(batch[1])):mean())
end
function net:configure_optimizers() return lt.optim.Lion(self:parameters(), {lr = 1e-4}) end
local function d(n) return lt.data.DataLoader(lt.data.TensorDataset(lt.rand(n, 5), lt.rand(n,
  4):gt(0.8):float()), {batch_size = 6}) end
return {model = net, data = {train = d(60), val = d(12)}}
