-- spec/ports/triplets.lua: a siamese network: anchors nearer to positives than to negatives.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(72, 8)))
  local loss_fn, images = nn.TripletMarginLoss{margin = 1.0}, {}
  for k = 1, 3 do images[k] = formulas.wave({6, 1, 8, 8}, k - 1) end
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function()
    return loss_fn(net(images[1]), net(images[2]), net(images[3]))
  end)
end
