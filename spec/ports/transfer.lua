-- spec/ports/transfer.lua: Transfer learning: a frozen backbone, a new head, StepLR.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
  local net = formulas.fill(nn.Sequential(backbone, nn.Linear(8 * 6 * 6, 2)))
  backbone:requires_grad_(false)
  local x, y = formulas.wave{8, 3, 8, 8}, formulas.ids({8}, 2)
  local optimizer = lt.optim.SGD(net[2]:parameters(), {lr = 0.01, momentum = 0.9})
  local scheduler = lt.optim.StepLR(optimizer, 7, {gamma = 0.1})
  return formulas.steps(optimizer, function(step)
    if step > 1 then scheduler:step() end
    return lt.cross_entropy(net(x), y)
  end)
end
