-- spec/ports/vgg.lua: VGG with batch norm, its layers from a list.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local layers, channels = {}, 3
  for _, width in ipairs{8, "M", 16, "M", 16, 16, "M"} do
    if width == "M" then
      table.insert(layers, nn.MaxPool2d(2))
    else
      table.insert(layers, nn.Conv2d(channels, width, 3, {padding = 1}))
      table.insert(layers, nn.BatchNorm2d(width))
      table.insert(layers, nn.ReLU())
      channels = width
    end
  end
  local net = nn.Sequential(nn.Sequential(layers), nn.Flatten(), nn.Linear(64, 5))
  return formulas.classify(net, {6, 3, 16, 16}, 5, {lr = 0.02})
end
