-- spec/apps/check/models/iterable.lua: data without a length.
local lt = require "ltrain"
local Stream = lt.data.IterableDataset:extend "Stream"
function Stream:iterate()
  local i = 0
  return function()
    i = i + 1
    if i > 50 then return nil end
    local x = lt.randn(4)
    return {x, x:sum():reshape(1)}
  end
end
local net = lt.nn.Linear(4, 1)
function net:training_step(batch)
  local loss = lt.mse_loss(self(batch[1]), batch[2])
  return loss
end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
return {model = net, data = lt.data.DataLoader(Stream(), {batch_size = 5})}
