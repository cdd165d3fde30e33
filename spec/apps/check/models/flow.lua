-- spec/apps/check/models/flow.lua: a normalising flow of couplings whose last layers begin at 0.
local lt = require "ltrain"
local nn = lt.nn
local Coupling = lt.Module:extend "Coupling"
function Coupling:init(o)
  self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
  self.flip = o.flip
  nn.init.zeros_(self.net[3].weight)
  nn.init.zeros_(self.net[3].bias)
end
function Coupling:forward(x)
  local a, b = x:narrow(2, 1, 2), x:narrow(2, 3, 2)
  if self.flip then a, b = b, a end
  local both = self.net(a)
  local scale, shift = both:narrow(2, 1, 2):tanh(), both:narrow(2, 3, 2)
  b = b * scale:exp() + shift
  local y = self.flip and lt.cat({ b, a }, 2) or lt.cat({ a, b }, 2)
  return y, scale:sum(-1)
end
local Flow = lt.Module:extend "Flow"
function Flow:init()
  self.steps = nn.ModuleList { Coupling { flip = false }, Coupling { flip = true },
    Coupling { flip = false }, Coupling { flip = true } }
end
function Flow:training_step(batch)
  local z, total = batch[1], 0
  for _, step in ipairs(self.steps) do
    local change
    z, change = step(z)
    total = total + change
  end
  local log_likelihood = -0.5 * z:square():sum(-1) - 2 * math.log(2 * math.pi) + total
  local loss = -log_likelihood:mean()
  return loss
end
function Flow:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
local data = lt.data.TensorDataset(lt.randn(64, 4) * 3 + 1)
return { model = Flow(), data = lt.data.DataLoader(data, { batch_size = 16, shuffle = true }) }
