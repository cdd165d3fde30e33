-- spec/ports/pointnet.lua: PointNet: the same layers for each point, the maximum over points.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleDict{
    points = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(),
      nn.Conv1d(16, 32, 1)),
    head = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))})
  local x, y = formulas.wave{6, 3, 24}, formulas.ids({6}, 4)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net.head(net.points(x):amax(3)), y)
  end)
end
