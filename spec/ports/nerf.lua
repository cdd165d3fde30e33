-- spec/ports/nerf.lua: a tiny NeRF: frequencies of points; densities and colours along rays.
local lt = require "ltrain"
local nn = lt.nn

local function encode(points)
  local list = {points}
  for k = 0, 3 do
    list[#list + 1] = (points * 2 ^ k):sin()
    list[#list + 1] = (points * 2 ^ k):cos()
  end
  return lt.cat(list, {dim = -1})
end

local function render(raw) -- [rays, points, 4] -> [rays, 3]
  local alpha = 1 - (-raw[{lt.all, lt.all, 4}]:softplus() * 0.3):exp()
  local clear = (1 - alpha + 1e-10):cumprod(2)
  clear = lt.cat({lt.ones(8, 1), clear:narrow(2, 1, 5)}, {dim = 2})
  local colour = raw[{lt.all, lt.all, {1, 3}}]:sigmoid()
  return ((alpha * clear):unsqueeze(-1) * colour):sum(2)
end

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(3 + 3 * 8, 32), nn.ReLU(),
    nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)))
  local directions = lt.normalize(formulas.wave({8, 1, 3}, 1), {dim = -1})
  local points = formulas.wave{8, 1, 3} + directions * lt.linspace(0.5, 2, 6):unsqueeze(2)
  local features, colours = encode(points), formulas.ids({8, 3}, 2):to "f32"
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function()
    return lt.mse_loss(render(net(features)), colours)
  end)
end
