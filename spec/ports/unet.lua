-- spec/ports/unet.lua: U-Net: down, up by transposed convolutions, skips; BCE and Dice.
local lt = require "ltrain"
local nn = lt.nn

local function double(channels, width)
  return nn.Sequential(nn.Conv2d(channels, width, 3, {padding = 1}), nn.ReLU(),
    nn.Conv2d(width, width, 3, {padding = 1}), nn.ReLU())
end

local UNet = lt.Module:extend("UNet")

function UNet:init()
  self.down1, self.down2, self.bottom = double(1, 6), double(6, 12), double(12, 16)
  self.up2, self.conv2 = nn.ConvTranspose2d(16, 12, 2, {stride = 2}), double(24, 12)
  self.up1, self.conv1 = nn.ConvTranspose2d(12, 6, 2, {stride = 2}), double(12, 6)
  self.out = nn.Conv2d(6, 1, 1)
end

function UNet:forward(x) -- [N, 1, H, W] -> logits of the same shape
  local a = self.down1(x)
  local b = self.down2(a:max_pool2d(2))
  local y = self.bottom(b:max_pool2d(2))
  y = self.conv2(lt.cat({self.up2(y), b}, {dim = 2}))
  y = self.conv1(lt.cat({self.up1(y), a}, {dim = 2}))
  return self.out(y)
end

return function(formulas)
  local net, x = formulas.fill(UNet()), formulas.wave{2, 1, 16, 16}
  local y = x:gt(0.3):to "f32"
  local dice = nn.DiceLoss{smooth = 1}
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function()
    local logits = net(x)
    return lt.binary_cross_entropy_with_logits(logits, y) + dice(logits:sigmoid(), y)
  end)
end
