-- spec/apps/check/models/stateful.lua: an LSTM that keeps its detached state from batch to batch.
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init() self.lstm, self.head = nn.LSTM(4, 8), nn.Linear(8, 1) end
function Net:training_step(batch)
  local out, state = self.lstm(batch[1], self.state)
  self.state = { state[1]:detach(), state[2]:detach() }
  return lt.mse_loss(self.head(out), batch[2])
end
function Net:on_train_epoch_start() self.state = nil end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-3 }) end
local x = lt.randn(64, 10, 4)
local data = lt.data.TensorDataset(x, x:sum(3, { keepdim = true }))
return { model = Net(), data = lt.data.DataLoader(data, { batch_size = 8, drop_last = true }) }
