-- examples/ddp.lua: the same script trains on one process and on many.
--
--   ltrain run examples/ddp.lua --devices 2                 two processes of this machine
--   mpirun -n 4 --bind-to none ltrain run examples/ddp.lua  four that mpirun starts
--
-- Learns drawn digits. Prints how many ranks there were, the batch that they shared, and the
-- accuracy on images that were not trained on, which is above 0.95 on any number of ranks.
local lt = require "ltrain"
local nn = lt.nn

lt.seed(1)

local Digits = lt.Module:extend("Digits")

function Digits:init()
  self.conv1 = nn.Conv2d(1, 8, 3, {padding = 1})
  self.conv2 = nn.Conv2d(8, 16, 3, {padding = 1})
  self.head = nn.Linear(16 * 7 * 7, 10)
  self.accuracy = lt.metrics.Accuracy()
end

function Digits:forward(x) -- [B, 1, 28, 28] -> [B, 10]
  x = self.conv1(x):relu():max_pool2d(2)
  x = self.conv2(x):relu():max_pool2d(2)
  local logits = self.head(x:flatten(2))
  return logits
end

-- Gradients of all ranks are joined after it.
function Digits:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

-- Each image is on one rank; what is logged is that of all of them.
function Digits:validation_step(batch)
  self.accuracy:update(self(batch[1]), batch[2])
  self:log("val_acc", self.accuracy, {prog_bar = true})
end

function Digits:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 2e-3})
end

-- Images of all ranks together: another number of ranks needs no other learning rate.
local DataLoader, digits = lt.data.DataLoader, lt.data.digits
local trainer = lt.Trainer{max_epochs = 1}
trainer:fit(Digits(), {
  train = DataLoader(digits{split = "train"}, {global_batch_size = 64, shuffle = true}),
  val = DataLoader(digits{split = "test"}, {global_batch_size = 250}),
})

local world = trainer.world
trainer:print(("ranks %d, global batch %d, val_acc %.4f"):format(world.ranks, world.global_batch,
  trainer.callback_metrics.val_acc))
