-- stdlib/models/vgg.lua: VGG, networks of 3x3 convolutions, with torchvision's parameter names.
-- B batch, C channels, H height, W width.
--
-- Simonyan and Zisserman: Very deep convolutional networks, 2014. `net.features` returns the
-- features that perceptual losses compare.

local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

local VGG = nn.Module:extend("VGG")
VGG.__arguments = "|"

local OPTIONS <const> = {
  num_classes = { type = "integer", default = 1000, min = 1 },
  width = { type = "integer", default = 64, min = 1, doc = "channels of the first layer" },
  hidden = { type = "integer", default = 4096, min = 1, doc = "width of the classifier" },
  dropout = { type = "number", default = 0.5, min = 0, max = 1 },
}

-- How many convolutions each of the five stages has.
local COUNTS <const> = {
  vgg11 = { 1, 1, 2, 2, 2 }, vgg13 = { 2, 2, 2, 2, 2 }, vgg16 = { 2, 2, 3, 3, 3 },
  vgg19 = { 2, 2, 4, 4, 4 },
}

local function features(counts, width, batch_norm)
  local layers, inputs = nn.Sequential(), 3
  for i, count in ipairs(counts) do
    local outputs = width * math.min(1 << (i - 1), 8)
    for _ = 1, count do
      layers:append(nn.Conv2d(inputs, outputs, 3, { padding = 1 }))
      if batch_norm then layers:append(nn.BatchNorm2d(outputs)) end
      layers:append(nn.ReLU())
      inputs = outputs
    end
    layers:append(nn.MaxPool2d(2))
  end
  return layers, inputs
end

--- lt.models.vgg16{num_classes = 10}; the names with _bn have batch normalization
function VGG:init(options)
  local o = config.check(options, OPTIONS, "models." .. self.__name:lower())
  self:save_hyperparameters(o)
  local channels
  self.features, channels = features(self.counts, o.width, self.batch_norm)
  self.avgpool = nn.AdaptiveAvgPool2d(7)
  self.classifier = nn.Sequential(
    nn.Linear(channels * 7 * 7, o.hidden), nn.ReLU(), nn.Dropout(o.dropout),
    nn.Linear(o.hidden, o.hidden), nn.ReLU(), nn.Dropout(o.dropout),
    nn.Linear(o.hidden, o.num_classes))
  for _, module in ipairs(self:modules()) do
    if module.kernel_size and module.weight then
      nn.init.kaiming_normal_(module.weight, { mode = "fan_out", nonlinearity = "relu" })
      nn.init.zeros_(module.bias)
    elseif module.in_features then
      nn.init.normal_(module.weight, 0, 0.01)
      nn.init.zeros_(module.bias)
    end
  end
end

---@param x Tensor [B, 3, H, W], of 32 x 32 or more -> logits [B, num_classes]
function VGG:forward(x)
  local y = self.avgpool(self.features(x))
  local logits = self.classifier(y:flatten(2))
  return logits
end

local variants = {}
for name, counts in next, COUNTS do
  for _, suffix in ipairs { "", "_bn" } do
    local Net = VGG:extend((name .. suffix):upper())
    Net.counts, Net.batch_norm = counts, suffix == "_bn"
    variants[name .. suffix] = Net
  end
end

return variants
