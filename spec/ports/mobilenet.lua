-- spec/ports/mobilenet.lua: MobileNetV2: inverted residuals with ReLU6.
local lt = require "ltrain"
local nn = lt.nn

local function conv_norm(channels, width, kernel, options)
  local o = {bias = false}
  for key, value in pairs(options or {}) do o[key] = value end
  return nn.Sequential(nn.Conv2d(channels, width, kernel, o), nn.BatchNorm2d(width))
end

local Inverted = lt.Module:extend("Inverted")

function Inverted:init(channels, width, expand, stride)
  local hidden = channels * expand
  self.same = stride == 1 and channels == width
  self.expand = nn.Sequential(conv_norm(channels, hidden, 1), nn.ReLU6())
  self.depthwise = nn.Sequential(
    conv_norm(hidden, hidden, 3, {stride = stride, padding = 1, groups = hidden}), nn.ReLU6())
  self.project = conv_norm(hidden, width, 1)
end

function Inverted:forward(x)
  local y = self.project(self.depthwise(self.expand(x)))
  return self.same and x + y or y
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.features = nn.Sequential(conv_norm(3, 8, 3, {stride = 2, padding = 1}), nn.ReLU6(),
    Inverted(8, 8, 2, 1), Inverted(8, 12, 3, 2), conv_norm(12, 24, 1), nn.ReLU6())
  self.fc = nn.Linear(24, 5)
end

function Net:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas)
  local net, x, y = formulas.fill(Net()), formulas.wave{8, 3, 16, 16}, formulas.ids({8}, 5)
  local optimizer = lt.optim.RMSprop(net:parameters(), {lr = 1e-3, momentum = 0.9, alpha = 0.9})
  return formulas.steps(optimizer, function() return lt.cross_entropy(net(x), y) end)
end
