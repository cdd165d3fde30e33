-- spec/ports/resnext.lua: bottlenecks of ResNet-50, grouped as in ResNeXt.
local lt = require "ltrain"
local nn = lt.nn

local function conv_norm(channels, width, kernel, options)
  local conv = nn.Conv2d(channels, width, kernel, options)
  return nn.Sequential(conv, nn.BatchNorm2d(width))
end

local Bottleneck = lt.Module:extend("Bottleneck")

function Bottleneck:init(channels, width, stride)
  self.body = nn.Sequential(conv_norm(channels, width, 1, {bias = false}), nn.ReLU(),
    conv_norm(width, width, 3, {stride = stride, padding = 1, groups = 4, bias = false}),
    nn.ReLU(), conv_norm(width, 4 * width, 1, {bias = false}))
  self.shortcut = conv_norm(channels, 4 * width, 1, {stride = stride, bias = false})
end

function Bottleneck:forward(x)
  local y = (self.body(x) + self.shortcut(x)):relu()
  return y
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.features = nn.Sequential(nn.Conv2d(3, 8, 3, {padding = 1}), nn.ReLU(),
    nn.MaxPool2d(3, {stride = 2, padding = 1}), Bottleneck(8, 8, 1), Bottleneck(32, 8, 2))
  self.fc = nn.Linear(32, 5)
end

function Net:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas) return formulas.classify(Net(), {6, 3, 16, 16}, 5, {lr = 0.01}) end
