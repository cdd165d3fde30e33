-- examples/sweep.lua: flags of a script's own, and a sweep over them.
--
--   ltrain run examples/sweep.lua --lr 1e-2 --max_epochs 3
--   ltrain sweep examples/sweep.lua --lr 1e-3..1e-1 --width 16..128 --trials 8 --metric val_acc
--   ltrain compare ltrain_sweeps/sweep --metric val_acc
--
-- Two spirals, which a network tells apart; the data are made here. The sweep prints a line for
-- each trial and the best at the end, with over 95 % accuracy; ltrain_sweeps/sweep/sweep.csv is its
-- table. With --jobs 2 two trials run at a time.
local lt = require "ltrain"
local nn = lt.nn

local args = lt.args{
  lr = {1e-2, "learning rate"},
  width = {64, "hidden units", min = 1},
  act = {"tanh", "activation", choices = {"relu", "tanh"}},
  noise = {0.05, "standard deviation of the points"},
}

-- N points of each of two spirals: [2 N, 2], and the spiral of each: [2 N].
local function spirals(n)
  local t = lt.rand(n):sqrt() * 3 * math.pi
  local one = lt.stack({ t * t:cos(), t * t:sin() }, 2) / (3 * math.pi)
  local x = lt.cat({ one, -one }, 1)
  x = x + lt.randn_like(x) * args.noise
  return x, lt.cat({ lt.zeros(n, { dtype = "i64" }), lt.ones(n, { dtype = "i64" }) }, 1)
end

local Net = lt.Module:extend("Net")

function Net:init(o)
  local Act = o.act == "relu" and nn.ReLU or nn.Tanh
  self.body = nn.Sequential(nn.Linear(2, o.width), Act(), nn.Linear(o.width, o.width), Act(),
    nn.Linear(o.width, 2))
  self.accuracy = lt.metrics.Accuracy()
end

function Net:training_step(batch)
  local loss = lt.cross_entropy(self.body(batch[1]), batch[2])
  self:log("train_loss", loss)
  return loss
end

function Net:validation_step(batch)
  self.accuracy:update(self.body(batch[1]), batch[2])
  self:log("val_acc", self.accuracy)
end

function Net:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = args.lr})
end

lt.seed(1)
local train = lt.data.TensorDataset(spirals(400))
local val = lt.data.TensorDataset(spirals(100))

return {
  model = Net(args),
  data = {
    train = lt.data.DataLoader(train, {batch_size = 32, shuffle = true}),
    val = lt.data.DataLoader(val, {batch_size = 200}),
  },
  trainer = {max_epochs = 40, log_every_n_steps = 10},
}
