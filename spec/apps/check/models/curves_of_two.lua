-- spec/apps/check/models/curves_of_two.lua: metrics that need samples of both classes: two samples
-- of a check may have one.
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init()
  self.body = lt.nn.Linear(4, 1)
  self.auroc = lt.metrics.AUROC{from_logits = true}
end
function Net:forward(x)
  local scores = self.body(x):squeeze(-1)
  return scores
end
function Net:training_step(batch)
  return lt.binary_cross_entropy_with_logits(self(batch[1]), batch[2]:to "f32")
end
function Net:validation_step(batch)
  self.auroc:update(self(batch[1]), batch[2])
  self:log("val_auroc", self.auroc)
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end

-- Sorted: the first samples are of one class.
local function loader(shuffle)
  local x = lt.randn(64, 4)
  x[{lt.all, 1}] = lt.linspace(-1, 1, 64)
  local set = lt.data.TensorDataset(x, x:select(2, 1):gt(0):to "i64")
  return lt.data.DataLoader(set, {batch_size = 16, shuffle = shuffle})
end
return {model = Net(), data = {train = loader(true), val = loader(false)}}
