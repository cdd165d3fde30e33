-- spec/ports/super_resolution.lua: large images of small ones, by pixels that are channels.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Conv2d(1, 16, 5, {padding = 2}), nn.ReLU(),
    nn.Conv2d(16, 9, 3, {padding = 1}), nn.PixelShuffle(3)))
  local large = formulas.wave{2, 1, 24, 24}
  local small = large:interpolate{size = 8, mode = "bicubic", antialias = true}
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 1e-2})
  return formulas.steps(optimizer, function() return lt.mse_loss(net(small), large) end)
end
