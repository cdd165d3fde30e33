-- spec/apps/check/models/diffusion.lua: noise to be predicted at a random time; a last layer of
-- zeros.
local lt = require "ltrain"
local nn = lt.nn
local STEPS <const> = 1000
local Diffusion = lt.Module:extend "Diffusion"
function Diffusion:init()
  self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
  self.enter, self.middle = nn.Linear(8, 32), nn.Linear(32, 32)
  self.leave = nn.Linear(32, 8)
  nn.init.zeros_(self.leave.weight)
  nn.init.zeros_(self.leave.bias)
  local kept = (1 - lt.linspace(1e-4, 0.02, STEPS)):cumprod(1)
  self:register_buffer("kept", kept)
end
function Diffusion:forward(x, t)
  local frequency = (lt.arange(0, 8):float() * (-math.log(10000) / 8)):exp()
  local angle = t:float():unsqueeze(2) * frequency:unsqueeze(1)
  local time = self.time(lt.cat({ angle:sin(), angle:cos() }, 2))
  local hidden = nn.functional.silu(self.enter(x) + time)
  hidden = nn.functional.silu(self.middle(hidden)) + hidden
  local noise = self.leave(hidden)
  return noise
end
function Diffusion:training_step(batch)
  local x = batch[1]
  local t = lt.randint(0, STEPS, { x.shape[1] })
  local noise, kept = lt.randn_like(x), self.kept[t]:unsqueeze(2)
  local noisy = kept:sqrt() * x + (1 - kept):sqrt() * noise
  local loss = lt.mse_loss(self(noisy, t), noise)
  return loss
end
function Diffusion:configure_optimizers()
  return lt.optim.AdamW(self:parameters(), { lr = 2e-4 })
end
local data = lt.data.TensorDataset(lt.randn(64, 8))
return { model = Diffusion(), data = lt.data.DataLoader(data, { batch_size = 16, shuffle = true }),
  trainer = { max_epochs = 10, gradient_clip_val = 1.0 } }
