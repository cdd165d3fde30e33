-- spec/ports/alexnet.lua: AlexNet, narrow: a wide stride, overlapping pools, adaptive pooling.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local features = nn.Sequential(
    nn.Conv2d(3, 8, 7, {stride = 4, padding = 2}), nn.ReLU(), nn.MaxPool2d(3, {stride = 2}),
    nn.Conv2d(8, 12, 5, {padding = 2}), nn.ReLU(), nn.Conv2d(12, 8, 3, {padding = 1}), nn.ReLU())
  local net = nn.Sequential(features, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0),
    nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5))
  return formulas.classify(net, {4, 3, 40, 40}, 5, {lr = 0.02, momentum = 0.9})
end
