-- spec/apps/check/models/sam.lua: two passes a step: the gradients of the first move the weights,
-- and are cleared before the second.
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.automatic_optimization = false
  self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
end
function Net:move(sign)
  local _ <close> = lt.no_grad()
  for _, parameter in self:named_parameters() do
    if self.moves[parameter] then parameter:add_(self.moves[parameter] * sign) end
  end
end
function Net:training_step(batch)
  local optimizer = self:optimizers()
  optimizer:zero_grad()
  self:manual_backward(lt.cross_entropy(self.layers(batch[1]), batch[2]))
  self.moves = {}
  for _, parameter in self:named_parameters() do
    self.moves[parameter] = parameter.grad * 0.05
  end
  self:move(1)
  optimizer:zero_grad()
  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])
  self:manual_backward(loss)
  self:move(-1)
  optimizer:step()
  self:log("loss", loss)
end
function Net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), { lr = 0.1 })
end
local data = lt.data.TensorDataset(lt.randn(64, 8), lt.randint(0, 4, { 64 }))
return { model = Net(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
