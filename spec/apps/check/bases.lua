-- spec/apps/check/bases.lua: scripts without a bug, into which the rows of bugs.lua and
-- bugs_in_use.lua put one: {text =, changes = {{what it has, what is there instead}, ...}}.
local bases = {}

-- A classifier of 64 points in 4 classes; the parts in which bugs are put stand alone in lines.
local CLASSIFIER <const> = [[
local lt = require "ltrain"
local nn = lt.nn
lt.seed(1)
local Net = lt.Module:extend("Net")
function Net:init(o)
  self.first = nn.Linear(8, o.width)
  self.second = nn.Linear(o.width, 4)
end
function Net:forward(x)
  local hidden = self.first(x):relu()
  local logits = self.second(hidden)
  return logits
end
function Net:training_step(batch)
  local logits = self(batch[1])
  local loss = lt.cross_entropy(logits, batch[2])
  self:log("train_loss", loss)
  return loss
end
function Net:validation_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("val_loss", loss)
end
function Net:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 1e-3})
end
local x = lt.randn(64, 8)
local y = lt.randint(0, 4, {64})
local train = lt.data.TensorDataset(x, y)
local val = lt.data.TensorDataset(lt.randn(16, 8), lt.randint(0, 4, {16}))
local trainer = lt.Trainer{max_epochs = 2}
trainer:fit(Net{width = 16}, {
  train = lt.data.DataLoader(train, {batch_size = 8, shuffle = true}),
  val = lt.data.DataLoader(val, {batch_size = 8}),
})
]]

-- A regression with two columns.
local REGRESSION <const> = [[
local lt = require "ltrain"
lt.seed(1)
local net = lt.nn.Sequential(lt.nn.Linear(4, 16), lt.nn.Tanh(), lt.nn.Linear(16, 1))
function net:training_step(batch)
  local y = self(batch[1])
  return lt.mse_loss(y, batch[2])
end
function net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.01})
end
local x = lt.randn(32, 4)
local data = lt.data.TensorDataset(x, x:sum(2, {keepdim = true}))
return {model = net, data = {train = lt.data.DataLoader(data, {batch_size = 8, shuffle = true})}}
]]

function bases.classifier(...) return { text = CLASSIFIER, changes = { ... } } end
function bases.regression(...) return { text = REGRESSION, changes = { ... } } end

return bases
