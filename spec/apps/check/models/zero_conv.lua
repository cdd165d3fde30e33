-- spec/apps/check/models/zero_conv.lua: a residual network whose branches begin at 0, on a frozen
-- body.
local lt = require "ltrain"
local nn = lt.nn
local Block = lt.Module:extend "Block"
function Block:init()
  self.first, self.second = nn.Conv2d(4, 4, 3, { padding = 1 }), nn.Conv2d(4, 4, 1)
  self.gain = lt.parameter(lt.zeros(1))
  nn.init.zeros_(self.second.weight)
  nn.init.zeros_(self.second.bias)
end
function Block:forward(x)
  local hidden = nn.functional.silu(self.first(x))
  return x + self.second(hidden) + self.gain * hidden
end
local Net = lt.Module:extend "Net"
function Net:init()
  self.enter = nn.Conv2d(1, 4, 3)
  for _, parameter in self.enter:named_parameters() do parameter.requires_grad = false end
  self.blocks = nn.Sequential(Block(), Block())
  self.head = nn.Linear(4, 3)
  nn.init.zeros_(self.head.weight)
end
function Net:forward(x)
  local hidden = self.blocks(self.enter(x))
  local logits = self.head(hidden:mean { 3, 4 })
  return logits
end
function Net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
local data = lt.data.TensorDataset(lt.randn(64, 1, 8, 8), lt.randint(0, 3, { 64 }))
return { model = Net(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
