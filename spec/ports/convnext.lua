-- spec/ports/convnext.lua: ConvNeXt's block: depthwise 7x7, layer norm over channels, layer scale.
local lt = require "ltrain"
local nn = lt.nn

local Block = lt.Module:extend("Block")

function Block:init(width)
  self.dwconv = nn.Conv2d(width, width, 7, {padding = 3, groups = width})
  self.norm = nn.LayerNorm(width, {eps = 1e-6})
  self.pwconv1, self.pwconv2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
  self.gamma = lt.parameter(lt.ones(width))
end

function Block:forward(x) -- [N, C, H, W] -> the same
  local y = self.norm(self.dwconv(x):permute(1, 3, 4, 2))
  y = self.pwconv2(self.pwconv1(y):gelu()) * self.gamma
  return x + y:permute(1, 4, 2, 3)
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.features = nn.Sequential(nn.Conv2d(3, 12, 4, {stride = 4}), Block(12), Block(12))
  self.fc = nn.Linear(12, 5)
end

function Net:forward(x) return self.fc(self.features(x):mean{3, 4}) end

return function(formulas)
  local net, x, y = formulas.fill(Net()), formulas.wave{4, 3, 32, 32}, formulas.ids({4}, 5)
  local optimizer = lt.optim.AdamW(net:parameters(), {lr = 4e-3, weight_decay = 0.05})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net(x), y, {label_smoothing = 0.1})
  end)
end
