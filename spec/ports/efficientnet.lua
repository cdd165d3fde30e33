-- spec/ports/efficientnet.lua: EfficientNet's block: MBConv with squeeze and excitation.
local lt = require "ltrain"
local nn = lt.nn

local function conv_norm(channels, width, kernel, options)
  local o = {bias = false}
  for key, value in pairs(options or {}) do o[key] = value end
  return nn.Sequential(nn.Conv2d(channels, width, kernel, o), nn.BatchNorm2d(width))
end

local SqueezeExcite = lt.Module:extend("SqueezeExcite")

function SqueezeExcite:init(channels)
  self.fc1, self.fc2 = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)
end

function SqueezeExcite:forward(x)
  local scale = self.fc1(x:mean({3, 4}, {keepdim = true})):silu()
  return x * self.fc2(scale):sigmoid()
end

local MBConv = lt.Module:extend("MBConv")

function MBConv:init(channels, width, expand, stride)
  local hidden = channels * expand
  self.same = stride == 1 and channels == width
  self.expand = nn.Sequential(conv_norm(channels, hidden, 1), nn.SiLU())
  self.depthwise = nn.Sequential(
    conv_norm(hidden, hidden, 3, {stride = stride, padding = 1, groups = hidden}), nn.SiLU())
  self.squeeze = SqueezeExcite(hidden)
  self.project = conv_norm(hidden, width, 1)
end

function MBConv:forward(x)
  local y = self.project(self.squeeze(self.depthwise(self.expand(x))))
  return self.same and x + y or y
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.features = nn.Sequential(conv_norm(3, 8, 3, {stride = 2, padding = 1}), nn.SiLU(),
    MBConv(8, 8, 2, 1), MBConv(8, 12, 3, 2))
  self.fc = nn.Linear(12, 5)
end

function Net:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas)
  return formulas.classify(Net(), {8, 3, 16, 16}, 5,
    {lr = 0.05, momentum = 0.9, nesterov = true})
end
