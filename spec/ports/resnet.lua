-- spec/ports/resnet.lua: ResNet: two basic blocks, the second with a stride.
local lt = require "ltrain"
local nn = lt.nn

local function conv_norm(channels, width, kernel, options)
  options.bias = false
  return nn.Sequential(nn.Conv2d(channels, width, kernel, options), nn.BatchNorm2d(width))
end

local Block = lt.Module:extend("Block")

function Block:init(channels, width, stride)
  self.body = nn.Sequential(conv_norm(channels, width, 3, {stride = stride, padding = 1}),
    nn.ReLU(), conv_norm(width, width, 3, {padding = 1}))
  local same = stride == 1 and channels == width
  self.shortcut = same and nn.Identity() or conv_norm(channels, width, 1, {stride = stride})
end

function Block:forward(x)
  local y = (self.body(x) + self.shortcut(x)):relu()
  return y
end

local ResNet = lt.Module:extend("ResNet")

function ResNet:init()
  self.features = nn.Sequential(conv_norm(3, 8, 3, {padding = 1}), nn.ReLU(), Block(8, 8, 1),
    Block(8, 16, 2))
  self.fc = nn.Linear(16, 5)
end

function ResNet:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas)
  return formulas.classify(ResNet(), {6, 3, 12, 12}, 5,
    {lr = 0.05, momentum = 0.9, weight_decay = 1e-4})
end
