-- examples/fine_tune.lua: a residual network that has learned from photographs learns digits.
--
--   ltrain run examples/fine_tune.lua -- --weights resnet18.pth   torchvision's file
--   ltrain run examples/fine_tune.lua                             from random weights
--
-- First the new head alone, then, with a tenth of the rate, all of it. Prints the accuracy.
local lt = require "ltrain"
local nn, ResNet = lt.nn, lt.models.resnet18

local weights = arg[1] == "--weights" and arg[2]

local Net = ResNet:extend("Net")

function Net:init()
  ResNet.init(self)                                   -- as the file has it: 1000 classes
  if weights then self:load_state_dict(assert(lt.load(weights))) end
  self.fc = nn.Linear(self.fc.in_features, 10)
  self.accuracy = lt.metrics.Accuracy()
end

function Net:forward(x) -- [B, 1, 28, 28] -> [B, 10]: the three colours are the same
  local logits = ResNet.forward(self, x:expand(-1, 3, -1, -1))
  return logits
end

function Net:backbone()
  return {self.conv1, self.bn1, self.layer1, self.layer2, self.layer3, self.layer4}
end

function Net:on_train_epoch_start()
  if not weights then return end
  for _, part in ipairs(self:backbone()) do
    if self.current_epoch == 0 then part:freeze() else part:unfreeze() end
  end
end

function Net:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("train_loss", loss, {prog_bar = true})
  return loss
end

function Net:validation_step(batch)
  self.accuracy(self(batch[1]), batch[2])
  self:log("val_acc", self.accuracy, {prog_bar = true})
end

function Net:configure_optimizers()
  local rest = {}
  for _, part in ipairs(self:backbone()) do
    for _, parameter in ipairs(part:parameters()) do rest[#rest + 1] = parameter end
  end
  return lt.optim.AdamW({{params = self.fc:parameters()}, {params = rest, lr = 1e-4}}, {lr = 1e-3})
end

local function loader(split)
  return lt.data.DataLoader(lt.data.digits{split = split}, {batch_size = 64,
    shuffle = split == "train"})
end

local trainer = lt.Trainer{max_epochs = 2}
trainer:fit(Net(), {train = loader("train"), val = loader("test")})
trainer:print(("accuracy %.1f %%"):format(100 * trainer.callback_metrics.val_acc))
