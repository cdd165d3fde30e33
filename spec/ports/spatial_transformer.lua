-- spec/ports/spatial_transformer.lua: a network that turns its input, then classifies it.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.where = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
    nn.Linear(144, 6))
  self.layers = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
    nn.Flatten(), nn.Linear(96, 4))
end

function Net:forward(x) -- [N, 1, H, W]
  local theta = self.where(x):view(-1, 2, 3)
  return self.layers(x:grid_sample(theta:affine_grid(x.shape)))
end

return function(formulas) return formulas.classify(Net(), {6, 1, 16, 16}, 4, {lr = 0.05}) end
