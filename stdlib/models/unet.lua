-- stdlib/models/unet.lua: U-Net, with the parameter names of github.com/milesial/Pytorch-UNet.
-- B batch, C channels, H height, W width.
--
-- Ronneberger et al.: U-Net, 2015; with batch normalization and padded convolutions.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

local DoubleConv = nn.Module:extend("DoubleConv")

function DoubleConv:init(inputs, outputs, between)
  between = between or outputs
  self.double_conv = nn.Sequential(
    nn.Conv2d(inputs, between, 3, { padding = 1, bias = false }), nn.BatchNorm2d(between),
    nn.ReLU(),
    nn.Conv2d(between, outputs, 3, { padding = 1, bias = false }), nn.BatchNorm2d(outputs),
    nn.ReLU())
end

function DoubleConv:forward(x)
  x = self.double_conv(x)
  return x
end

-- Half the size.
local Down = nn.Module:extend("Down")

function Down:init(inputs, outputs)
  self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))
end

function Down:forward(x)
  x = self.maxpool_conv(x)
  return x
end

-- Twice the size, beside what had that size on the way down.
local Up = nn.Module:extend("Up")

function Up:init(inputs, outputs, bilinear)
  if bilinear then
    self.up = nn.Upsample { scale_factor = 2, mode = "bilinear", align_corners = true }
    self.conv = DoubleConv(inputs, outputs, inputs // 2)
  else
    self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, { stride = 2 })
    self.conv = DoubleConv(inputs, outputs)
  end
end

function Up:forward(x, beside)
  x = self.up(x)
  local rows, columns = beside.shape[3] - x.shape[3], beside.shape[4] - x.shape[4]
  if rows + columns > 0 then x = x:pad { 0, columns, 0, rows } end -- an odd size was rounded down
  x = self.conv(c.cat({ beside, x }, 2))
  return x
end

local UNet = nn.Module:extend("UNet")
UNet.__arguments = "|"

local OPTIONS <const> = {
  in_channels = { type = "integer", default = 3, min = 1 },
  num_classes = { type = "integer", default = 2, min = 1, doc = "channels of the output" },
  width = { type = "integer", default = 64, min = 2, doc = "channels of the first layer" },
  bilinear = { type = "boolean", default = false,
    doc = "upsample with bilinear interpolation instead of transposed convolutions" },
}

--- lt.models.unet{in_channels = 1, num_classes = 2, width = 16}
function UNet:init(options)
  local o = config.check(options, OPTIONS, "models.unet")
  self:save_hyperparameters(o)
  local w, part = o.width, o.bilinear and 2 or 1 -- interpolation leaves the channels as they are
  self.inc = DoubleConv(o.in_channels, w)
  for i = 1, 4 do
    self["down" .. i] = Down(w << (i - 1), (w << i) // (i == 4 and part or 1))
    self["up" .. i] = Up(w << (5 - i), (w << (4 - i)) // (i < 4 and part or 1), o.bilinear)
  end
  self.outc = nn.ModuleDict { conv = nn.Conv2d(w, o.num_classes, 1) }
end

---@param x Tensor [B, C, H, W], of 16 x 16 or more -> logits [B, num_classes, H, W]
function UNet:forward(x)
  local x1 = self.inc(x)
  local x2 = self.down1(x1)
  local x3 = self.down2(x2)
  local x4 = self.down3(x3)
  local y = self.up1(self.down4(x4), x4)
  y = self.up3(self.up2(y, x3), x2)
  local logits = self.outc.conv(self.up4(y, x1))
  return logits
end

return UNet
