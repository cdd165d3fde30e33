-- spec/ports/simclr.lua: SimCLR: two views of each image are each other's class (NT-Xent).
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(),
    nn.Linear(32, 8)))
  local views = lt.cat{formulas.wave{6, 1, 8, 8}, formulas.wave({6, 1, 8, 8}, 0.4)}
  local labels, itself = lt.cat{lt.arange(6, 12), lt.arange(6)}, lt.eye(12):to "bool"
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.5, momentum = 0.9})
  return formulas.steps(optimizer, function()
    local z = lt.normalize(net(views), {dim = 2})
    local scores = z:matmul(z:t()) / 0.5
    return lt.cross_entropy(scores:masked_fill(itself, -math.huge), labels)
  end)
end
