-- spec/ports/ddpm.lua: a denoising diffusion model: embedded times, group norm, noise as target.
local lt = require "ltrain"
local nn = lt.nn

local Block = lt.Module:extend("Block")

function Block:init(channels, width)
  self.norm, self.conv = nn.GroupNorm(4, channels), nn.Conv2d(channels, width, 3, {padding = 1})
  self.time = nn.Linear(16, width)
end

function Block:forward(x, t)
  local shift = self.time(t):unsqueeze(3):unsqueeze(4)
  return self.conv(self.norm(x):silu()) + shift
end

local Net = lt.Module:extend("Net")

function Net:init()
  self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU())
  self.inp = nn.Conv2d(1, 8, 3, {padding = 1})
  self.block1, self.block2 = Block(8, 8), Block(8, 8)
  self.out = nn.Conv2d(8, 1, 3, {padding = 1})
end

function Net:forward(x, t) -- [N, 1, H, W], times [N] -> noise [N, 1, H, W]
  local angle = t:unsqueeze(2) * (lt.arange(8) * (-math.log(10000) / 8)):exp()
  local time = self.time(lt.cat({angle:sin(), angle:cos()}, {dim = 2}))
  local y = self.inp(x)
  y = y + self.block2(self.block1(y, time), time)
  return self.out(y)
end

return function(formulas)
  local net, x = formulas.fill(Net()), formulas.wave{4, 1, 8, 8}
  local kept = (1 - lt.linspace(1e-4, 0.02, 100)):cumprod(1)
  local optimizer = lt.optim.AdamW(net:parameters(), {lr = 5e-3})
  return formulas.steps(optimizer, function(step)
    local t, noise = formulas.ids({4}, 100, step), formulas.wave({4, 1, 8, 8}, step)
    local share = kept[t]:view(-1, 1, 1, 1)
    return lt.mse_loss(net(share:sqrt() * x + (1 - share):sqrt() * noise, t), noise)
  end)
end
