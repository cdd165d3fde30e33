-- spec/trainer/sharded.lua: the beginning of scripts that save and read sharded checkpoints.
return [[
local c = require "ltrain.c"
local reader = require "ltrain.files.sharded_reader"
local nn = lt.nn
local Net = lt.Module:extend("Net")
function Net:init(o)
  self:save_hyperparameters(o or {})
  self.a, self.b = nn.Linear(257, 301), nn.Linear(301, 1)
  self.w = lt.parameter(lt.ones(1))
end
function Net:forward(x) return self.b(self.a(x):tanh()) * self.w end
function Net:training_step(batch)
  local loss = (self(batch[1]) - 1):square():mean()
  self:log("loss", loss, {on_epoch = true, sync_dist = true})
  return loss
end
function Net:validation_step(batch) self:log("val", self(batch[1]):mean(), {sync_dist = true}) end
function Net:configure_model() self:to "f64" end
function Net:configure_optimizers()
  return lt.optim.Adam({{params = self.a:parameters()},
    {params = {self.b.weight, self.b.bias, self.w}, lr = 0.002}}, {lr = 0.001})
end
lt.seed(5)
local x = lt.randn(48, 257):to "f64"
local function data(n)
  return lt.data.DataLoader(lt.data.TensorDataset(x:narrow(1, 1, n or 48)),
    {global_batch_size = 8, shuffle = n == nil, seed = 3})
end
-- A fit on some ranks; strategy: a name, or a table of it and options; returns net and Trainer.
local function fit(strategy, ranks, o, fit_options, own)
  lt.seed(1)
  local net, all = (own or Net)(), {devices = ranks, max_epochs = 2}
  if type(strategy) == "string" then strategy = {strategy} end
  all.strategy = {}
  for name, value in pairs(strategy) do all.strategy[name] = value end
  if ranks > 1 and all.strategy.state_dict_type == nil then
    all.strategy.state_dict_type = "sharded"
  end
  for name, value in pairs(o or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, data(), o and o.val and data(16) or nil, fit_options)
  return net, t
end
local function same(a, b) return lt.hash(a:state_dict()) == lt.hash(b:state_dict()) end
-- Whether the weights are equal but for the order of sums.
local function near(a, b)
  local most, other = 0, b:state_dict()
  for name, value in pairs(a:state_dict()) do
    most = math.max(most, (value - other[name]):abs():max():item())
  end
  return most < 1e-12
end
-- Saves after so many steps of a fit, which ends then.
local function cut(strategy, ranks, steps, path, o)
  local Own = Net:extend("Net")
  function Own:on_train_batch_end()
    if self.global_step == steps then self.trainer:save_checkpoint(path) end
  end
  local all = {max_steps = steps}
  for name, value in pairs(o or {}) do all[name] = value end
  fit(strategy, ranks, all, nil, Own)
end
local function files(folder) return table.concat(c.io.list_folder(folder), " ") end
]]
