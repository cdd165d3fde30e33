-- spec/ports/fcn.lua: FCN (Long et al. 2015): scores of two depths, enlarged by bilinear filters.
local lt = require "ltrain"
local nn = lt.nn

local function stage(channels, width)
  return nn.Sequential(nn.Conv2d(channels, width, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2))
end

-- A transposed convolution that starts as bilinear interpolation, each channel by itself.
local function bilinear(channels, stride)
  local up = nn.ConvTranspose2d(channels, channels, 2 * stride,
    {stride = stride, padding = stride // 2, bias = false})
  local near = 1 - (lt.arange(2 * stride) - (stride - 0.5)):abs() / stride
  local _ <close> = lt.no_grad()
  up.weight:copy_(lt.eye(channels):reshape(channels, channels, 1, 1) * near:unsqueeze(2) * near)
  return up
end

local FCN = lt.Module:extend("FCN")

function FCN:init()
  self.pool2, self.pool3 = nn.Sequential{stage(3, 8), stage(8, 12)}, stage(12, 16)
  self.score2, self.score3 = nn.Conv2d(12, 5, 1), nn.Conv2d(16, 5, 1)
end

function FCN:forward(x) -- [N, 3, H, W] -> scores [N, 5, H, W]
  local a = self.pool2(x)
  local y = self.up2(self.score3(self.pool3(a))) + self.score2(a)
  return self.up4(y)
end

return function(formulas)
  local net, x = formulas.fill(FCN()), formulas.wave{2, 3, 16, 16}
  net.up2, net.up4 = bilinear(5, 2), bilinear(5, 4)
  local y = formulas.ids({2, 16, 16}, 6)
  y = y:masked_fill(y:eq(5), 255)
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.05, momentum = 0.9, weight_decay = 5e-4})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net(x), y, nil, {ignore_index = 255})
  end)
end
