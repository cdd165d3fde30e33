-- stdlib/models/resnet.lua: residual networks, with torchvision's parameter names.
-- B batch, C channels, H height, W width.
--
-- He et al.: Deep residual learning for image recognition, 2015. As in torchvision, the 3x3
-- convolution of a bottleneck has the stride.

local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

local function conv(inputs, outputs, size, stride)
  return nn.Conv2d(inputs, outputs, size, { stride = stride, padding = size // 2, bias = false })
end

-- Two convolutions.
local BasicBlock = nn.Module:extend("BasicBlock")
BasicBlock.expansion = 1

function BasicBlock:init(inputs, width, stride, downsample)
  self.conv1, self.bn1 = conv(inputs, width, 3, stride), nn.BatchNorm2d(width)
  self.conv2, self.bn2 = conv(width, width, 3, 1), nn.BatchNorm2d(width)
  self.downsample = downsample
end

function BasicBlock:forward(x)
  local y = self.bn1(self.conv1(x)):relu()
  y = self.bn2(self.conv2(y))
  if self.downsample then x = self.downsample(x) end
  y = (y + x):relu()
  return y
end

-- Three convolutions, the middle one of a quarter of the channels.
local Bottleneck = nn.Module:extend("Bottleneck")
Bottleneck.expansion = 4

function Bottleneck:init(inputs, width, stride, downsample)
  self.conv1, self.bn1 = conv(inputs, width, 1, 1), nn.BatchNorm2d(width)
  self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
  self.conv3, self.bn3 = conv(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width)
  self.downsample = downsample
end

function Bottleneck:forward(x)
  local y = self.bn1(self.conv1(x)):relu()
  y = self.bn2(self.conv2(y)):relu()
  y = self.bn3(self.conv3(y))
  if self.downsample then x = self.downsample(x) end
  y = (y + x):relu()
  return y
end

local ResNet = nn.Module:extend("ResNet")
ResNet.__arguments = "|"

local OPTIONS <const> = {
  num_classes = { type = "integer", default = 1000, min = 1 },
  in_channels = { type = "integer", default = 3, min = 1 },
  width = { type = "integer", default = 64, min = 1, doc = "channels of the first layers" },
}

local function stage(block, inputs, width, count, stride)
  local outputs, downsample = width * block.expansion, nil
  if stride > 1 or inputs ~= outputs then
    downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
  end
  local blocks = nn.Sequential(block(inputs, width, stride, downsample))
  for _ = 2, count do blocks:append(block(outputs, width, 1)) end
  return blocks
end

--- lt.models.resnet18{num_classes = 10}
function ResNet:init(options)
  local o, block = config.check(options, OPTIONS, "models." .. self.__name:lower()), self.block
  self:save_hyperparameters(o)
  self.conv1 = nn.Conv2d(o.in_channels, o.width, 7, { stride = 2, padding = 3, bias = false })
  self.bn1 = nn.BatchNorm2d(o.width)
  self.maxpool = nn.MaxPool2d(3, { stride = 2, padding = 1 })
  local inputs = o.width
  for i, count in ipairs(self.counts) do
    local width = o.width << (i - 1)
    self["layer" .. i] = stage(block, inputs, width, count, i == 1 and 1 or 2)
    inputs = width * block.expansion
  end
  self.fc = nn.Linear(inputs, o.num_classes)
  for _, module in ipairs(self:modules()) do
    if module.kernel_size and module.weight then
      nn.init.kaiming_normal_(module.weight, { mode = "fan_out", nonlinearity = "relu" })
    end
  end
end

--- Returns the feature maps before global average pooling.
---@param x Tensor [B, C, H, W] -> [B, 8 * width (bottlenecks: 32 * width), H / 32, W / 32]
function ResNet:features(x)
  x = self.maxpool(self.bn1(self.conv1(x)):relu())
  x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
  return x
end

---@param x Tensor [B, C, H, W] -> logits [B, num_classes]
function ResNet:forward(x)
  local features = self:features(x):mean({ 3, 4 })
  local logits = self.fc(features)
  return logits
end

local function variant(name, block, counts)
  local Net = ResNet:extend(name)
  Net.block, Net.counts = block, counts
  return Net
end

return {
  resnet18 = variant("ResNet18", BasicBlock, { 2, 2, 2, 2 }),
  resnet34 = variant("ResNet34", BasicBlock, { 3, 4, 6, 3 }),
  resnet50 = variant("ResNet50", Bottleneck, { 3, 4, 6, 3 }),
}
