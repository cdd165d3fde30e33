-- spec/ports/mlp_mixer.lua: MLP-Mixer: linear layers over positions and over channels in turn.
local lt = require "ltrain"
local nn = lt.nn

local function mlp(width)
  return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
end

local Mixer = lt.Module:extend("Mixer")

function Mixer:init()
  self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
  self.tokens, self.channels = mlp(16), mlp(12)
end

function Mixer:forward(x) -- [N, T, C] -> the same
  x = x + self.tokens(self.norm1(x):transpose(2, 3)):transpose(2, 3)
  return x + self.channels(self.norm2(x))
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.patch = nn.Conv2d(3, 12, 4, {stride = 4})
  self.blocks = nn.Sequential(Mixer(), Mixer())
  self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 5)
end

function Net:forward(x)
  local y = self.blocks(self.patch(x):flatten(3):transpose(2, 3))
  return self.head(self.norm(y):mean(2))
end

return function(formulas)
  local net, x, y = formulas.fill(Net()), formulas.wave{4, 3, 16, 16}, formulas.ids({4}, 5)
  local optimizer = lt.optim.RAdam(net:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function() return lt.cross_entropy(net(x), y) end)
end
