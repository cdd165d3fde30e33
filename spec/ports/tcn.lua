-- spec/ports/tcn.lua: a temporal convolutional network (Bai et al. 2018): causal, dilated.
local lt = require "ltrain"
local nn = lt.nn
local norm <const> = nn.utils.weight_norm

local Block = lt.Module:extend("Block")

function Block:init(width_in, width, dilation)
  self.padding = 2 * dilation
  self.conv1 = norm(nn.Conv1d(width_in, width, 3, {dilation = dilation}))
  self.conv2 = norm(nn.Conv1d(width, width, 3, {dilation = dilation}))
  self.downsample = nn.Conv1d(width_in, width, 1)
end

function Block:forward(x) -- [N, C, T]
  local y = self.conv1(x:pad{self.padding, 0}):relu()
  y = self.conv2(y:pad{self.padding, 0}):relu()
  return (y + self.downsample(x)):relu()
end

return function(formulas)
  local net = formulas.fill(nn.Sequential(Block(2, 8, 1), Block(8, 8, 2), nn.Conv1d(8, 1, 1)))
  local x = formulas.wave{4, 2, 20}
  local y = x:sum(2, {keepdim = true}):roll(1, 3)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function() return lt.mse_loss(net(x), y) end)
end
