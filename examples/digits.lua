-- examples/digits.lua: a convolutional network learns handwritten digits.
--
--   ltrain run examples/digits.lua                               drawn digits, no download
--   ltrain run examples/digits.lua -- --data FOLDER              real MNIST files in FOLDER
--   ltrain run examples/digits.lua --ckpt_path last              resume from the last checkpoint
--
-- Prints the metrics of each epoch and, at the end, the accuracy on digits it has never seen.
local lt = require "ltrain"
local nn = lt.nn

local Digits = lt.Module:extend("Digits")

function Digits:init()
  self.conv1 = nn.Conv2d(1, 16, 3, {padding = 1})
  self.norm1 = nn.BatchNorm2d(16)
  self.conv2 = nn.Conv2d(16, 32, 3, {padding = 1})
  self.norm2 = nn.BatchNorm2d(32)
  self.dropout = nn.Dropout(0.25)
  self.head = nn.Linear(32 * 7 * 7, 10)
  self.accuracy = {val = lt.metrics.Accuracy(), test = lt.metrics.Accuracy()}
end

function Digits:forward(x) -- [B, 1, 28, 28] -> [B, 10]
  x = self.norm1(self.conv1(x)):relu():max_pool2d(2)
  x = self.norm2(self.conv2(x)):relu():max_pool2d(2)
  local flat = self.dropout(x:flatten(2))
  local logits = self.head(flat)
  return logits
end

function Digits:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Digits:evaluate(batch, stage)
  local logits = self(batch[1])
  self.accuracy[stage]:update(logits, batch[2])
  self:log(stage .. "_acc", self.accuracy[stage], {prog_bar = true})
  return logits
end

function Digits:validation_step(batch)
  local logits = self:evaluate(batch, "val")
  self:log("val_loss", lt.cross_entropy(logits, batch[2]), {prog_bar = true})
end

function Digits:test_step(batch)
  self:evaluate(batch, "test")
end

function Digits:configure_optimizers()
  local optimizer = lt.optim.Adam(self:parameters(), {lr = 2e-3})
  local scheduler = lt.optim.CosineAnnealingLR(optimizer, self.trainer.max_epochs)
  return {optimizer = optimizer, lr_scheduler = scheduler}
end

if ... == "class" then return Digits end -- examples/predict.lua loads a checkpoint into it

-- The data: drawn digits, or the t10k files of MNIST cut into 7,000 + 1,000 + 2,000.
local function datasets(folder)
  if folder then
    local all = lt.data.mnist(folder, {split = "test"})
    return table.unpack(lt.data.random_split(all, {7000, 1000, 2000}, {seed = 1}))
  end
  local train, val = table.unpack(
    lt.data.random_split(lt.data.digits{split = "train"}, {11000, 1000}, {seed = 1}))
  return train, val, lt.data.digits{split = "test"}
end

local folder = arg and arg[1] == "--data" and arg[2] or nil
local train, val, test = datasets(folder)
local DataLoader = lt.data.DataLoader
local trainer = lt.Trainer{max_epochs = folder and 8 or 3}
trainer:fit(Digits(), {
  train = DataLoader(train, {batch_size = 64, shuffle = true}),
  val = DataLoader(val, {batch_size = 250}),
})
trainer:test(nil, {test = DataLoader(test, {batch_size = 250})})
