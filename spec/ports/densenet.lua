-- spec/ports/densenet.lua: DenseNet: each layer sees all before it; a transition halves the size.
local lt = require "ltrain"
local nn = lt.nn

local Layer = lt.Module:extend("Layer")

function Layer:init(channels, growth)
  self.norm = nn.BatchNorm2d(channels)
  self.conv = nn.Conv2d(channels, growth, 3, {padding = 1, bias = false})
end

function Layer:forward(x)
  local y = lt.cat({x, self.conv(self.norm(x):relu())}, {dim = 2})
  return y
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.features = nn.Sequential(nn.Conv2d(3, 8, 3, {padding = 1}), Layer(8, 4), Layer(12, 4),
    nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.AvgPool2d(2), Layer(8, 4),
    Layer(12, 4), nn.ReLU())
  self.fc = nn.Linear(16, 5)
end

function Net:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas) return formulas.classify(Net(), {6, 3, 10, 10}, 5, {lr = 0.1}) end
