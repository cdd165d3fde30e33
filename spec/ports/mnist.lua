-- spec/ports/mnist.lua: pytorch/examples: MNIST, by Adadelta with StepLR.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.conv1 = nn.Conv2d(1, 8, 3)
  self.conv2 = nn.Conv2d(8, 16, 3)
  self.fc1 = nn.Linear(256, 32)
  self.fc2 = nn.Linear(32, 10)
end

function Net:forward(x) -- [N, 1, 12, 12] -> [N, 10]
  x = self.conv2(self.conv1(x):relu()):relu():max_pool2d(2)
  x = self.fc1(x:flatten(2)):relu()
  return self.fc2(x):log_softmax(2)
end

function Net:training_step(batch)
  return lt.nll_loss(self(batch[1]), batch[2])
end

function Net:configure_optimizers()
  local optimizer = lt.optim.Adadelta(self:parameters(), {lr = 1.0})
  local scheduler = lt.optim.StepLR(optimizer, 5, {gamma = 0.7})
  return {optimizer = optimizer, lr_scheduler = {scheduler = scheduler, interval = "step"}}
end

return function(formulas)
  local batch = {formulas.wave{8, 1, 12, 12}, formulas.ids({8}, 10)}
  return formulas.fit(formulas.fill(Net()), {batch})
end
