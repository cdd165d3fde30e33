-- spec/apps/check/models/lora.lua: a frozen layer with a correction of low rank that begins at 0.
local lt = require "ltrain"
local nn = lt.nn
local Lora = lt.Module:extend "Lora"
function Lora:init(inputs, outputs, rank)
  self.base = nn.Linear(inputs, outputs)
  for _, parameter in self.base:named_parameters() do parameter.requires_grad = false end
  self.down = nn.Linear(inputs, rank, { bias = false })
  self.up = nn.Linear(rank, outputs, { bias = false })
  nn.init.zeros_(self.up.weight)
end
function Lora:forward(x)
  local correction = self.up(self.down(x))
  return self.base(x) + correction
end
local Net = lt.Module:extend "Net"
function Net:init()
  self.first, self.second = Lora(8, 32, 2), Lora(32, 4, 2)
end
function Net:forward(x)
  local hidden = self.first(x):gelu()
  local logits = self.second(hidden)
  return logits
end
function Net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function Net:configure_optimizers()
  local list = {}
  for _, parameter in self:named_parameters() do
    if parameter.requires_grad then list[#list + 1] = parameter end
  end
  return lt.optim.AdamW(list, { lr = 1e-3 })
end
local data = lt.data.TensorDataset(lt.randn(64, 8), lt.randint(0, 4, { 64 }))
return { model = Net(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
