-- spec/ports/inception.lua: a block of GoogLeNet: four branches side by side.
local lt = require "ltrain"
local nn = lt.nn

local Inception = lt.Module:extend("Inception")

function Inception:init()
  self.b1 = nn.Conv2d(8, 4, 1)
  self.b2 = nn.Sequential(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 6, 3, {padding = 1}))
  self.b3 = nn.Sequential(nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 4, 5, {padding = 2}))
  self.b4 = nn.Sequential(nn.MaxPool2d(3, {stride = 1, padding = 1}), nn.Conv2d(8, 4, 1))
end

function Inception:forward(x)
  local y = lt.cat({self.b1(x), self.b2(x), self.b3(x), self.b4(x)}, {dim = 2}):relu()
  return y
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.features = nn.Sequential(nn.Conv2d(3, 8, 3, {stride = 2, padding = 1}), nn.ReLU(),
    Inception())
  self.fc = nn.Linear(18, 5)
end

function Net:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas) return formulas.classify(Net(), {6, 3, 16, 16}, 5, {lr = 0.3}) end
