-- spec/apps/check/models/detection.lua: a batch with names, two heads, groups of an optimizer.
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.body = nn.Sequential(nn.Conv2d(1, 4, 3, {padding = 1}), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten())
  self.label, self.box = nn.Linear(4, 5), nn.Linear(4, 4)
end
function Net:forward(x)
  local h = self.body(x)
  return {labels = self.label(h), boxes = self.box(h):sigmoid()}
end
function Net:training_step(batch)
  local out = self(batch.image)
  local loss = lt.cross_entropy(out.labels, batch.label) + lt.smooth_l1_loss(out.boxes, batch.box)
  return loss
end
function Net:configure_optimizers()
  return lt.optim.SGD({{params = self.body:parameters(), lr = 0.01},
    {params = self.label:parameters()}, {params = self.box:parameters()}}, {lr = 0.1,
      momentum = 0.9})
end
local list = {}
for i = 1, 24 do list[i] = {image = lt.rand(1, 8, 8), label = i % 5, box = lt.rand(4)} end
return {model = Net(), data = lt.data.DataLoader(list, {batch_size = 4, shuffle = true})}
