-- spec/ports/squeezenet.lua: fire modules, and a convolution in place of the linear layer.
local lt = require "ltrain"
local nn = lt.nn

local Fire = lt.Module:extend("Fire")

function Fire:init(channels, squeeze, expand)
  self.squeeze = nn.Conv2d(channels, squeeze, 1)
  self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
  self.expand3x3 = nn.Conv2d(squeeze, expand, 3, {padding = 1})
end

function Fire:forward(x)
  x = self.squeeze(x):relu()
  local y = lt.cat({self.expand1x1(x), self.expand3x3(x)}, {dim = 2}):relu()
  return y
end

return function(formulas)
  local net = formulas.fill(nn.Sequential(
    nn.Conv2d(3, 8, 3, {stride = 2}), nn.ReLU(), nn.MaxPool2d(3, {stride = 2, ceil_mode = true}),
    Fire(8, 4, 8), Fire(16, 4, 8), nn.Conv2d(16, 5, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()))
  local x, y = formulas.wave{6, 3, 20, 20}, formulas.ids({6}, 5)
  local optimizer = lt.optim.NAdam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function() return lt.cross_entropy(net(x), y) end)
end
