-- spec/ports/cifar.lua: Training a classifier: the network of the CIFAR-10 tutorial.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.conv1 = nn.Conv2d(3, 6, 5)
  self.pool = nn.MaxPool2d(2, {stride = 2})
  self.conv2 = nn.Conv2d(6, 16, 5)
  self.fc1 = nn.Linear(16 * 5 * 5, 120)
  self.fc2 = nn.Linear(120, 84)
  self.fc3 = nn.Linear(84, 10)
end

function Net:forward(x) -- [N, 3, 32, 32] -> [N, 10]
  x = self.pool(self.conv1(x):relu())
  x = self.pool(self.conv2(x):relu())
  x = self.fc1(x:flatten(2)):relu()
  return self.fc3(self.fc2(x):relu())
end

return function(formulas)
  return formulas.classify(Net(), {4, 3, 32, 32}, 10, {lr = 0.01, momentum = 0.9})
end
