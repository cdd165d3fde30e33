-- spec/ports/dcgan.lua: DCGAN: transposed convolutions against strided ones, by a plain loop.
local lt = require "ltrain"
local nn = lt.nn

local function options(stride, padding)
  return {stride = stride, padding = padding, bias = false}
end

return function(formulas)
  local G = formulas.fill(nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4, options(1, 0)), nn.BatchNorm2d(16), nn.ReLU(),
    nn.ConvTranspose2d(16, 8, 4, options(2, 1)), nn.BatchNorm2d(8), nn.ReLU(),
    nn.ConvTranspose2d(8, 1, 4, options(2, 1)), nn.Tanh()))
  local D = formulas.fill(nn.Sequential(
    nn.Conv2d(1, 8, 4, options(2, 1)), nn.LeakyReLU(0.2),
    nn.Conv2d(8, 16, 4, options(2, 1)), nn.BatchNorm2d(16), nn.LeakyReLU(0.2),
    nn.Conv2d(16, 1, 4, options(1, 0)), nn.Flatten()))
  local bce, o, losses = nn.BCEWithLogitsLoss(), {lr = 2e-3, betas = {0.5, 0.999}}, {}
  local for_d = lt.optim.Adam(D:parameters(), o)
  local for_g = lt.optim.Adam(G:parameters(), o)
  local real, yes, no = formulas.wave{8, 1, 16, 16}, lt.ones(8, 1), lt.zeros(8, 1)
  for step = 1, 20 do
    local z = formulas.wave({8, 8, 1, 1}, step)
    local loss_d = bce(D(real), yes) + bce(D(G(z):detach()), no)
    for_d:zero_grad()
    loss_d:backward()
    for_d:step()
    local loss_g = bce(D(G(z)), yes)
    for_g:zero_grad()
    loss_g:backward()
    for_g:step()
    losses[step] = (loss_d + loss_g):item()
  end
  return losses
end
