-- spec/parallel/pipeline_net.lua: the nets, the fits and the scripts of the specs of Pipeline.
local luassert = require "luassert"
local trained = require "spec.dist.trained"

-- Chain: an embedding before the blocks and a head behind them, which the embedding shares a matrix
-- with. Its options: dropout; list: the blocks are a ModuleList, called in a loop. `fit` reads
-- batches of 8 together, 5 in an epoch, the last of 4.
local NET <const> = [[
local nn = lt.nn
local Chain = lt.Module:extend("Chain")
function Chain:init(o)
  self.o = o or {}
  self.embed = nn.Linear(6, 8)
  local List = self.o.list and nn.ModuleList or nn.Sequential
  self.blocks = List()
  for i = 1, 5 do
    self.blocks:append(nn.Sequential(nn.Linear(8, 4 + i), nn.Tanh(), nn.Linear(4 + i, 8),
      nn.Dropout(self.o.dropout or 0)))
  end
  self.head = nn.Linear(8, 8, {bias = false})
  self.unused = lt.parameter(lt.ones(3))
  self:to "f64"
end
function Chain:forward(x)
  local h = self.embed(x)
  if self.o.list then
    for _, block in ipairs(self.blocks) do h = block(h) end
  else
    h = self.blocks(h)
  end
  h = self.head(h):matmul(self.embed.weight)
  return h
end
function Chain:training_step(batch)
  local loss = (self(batch[1]) - 1):square():mean()
  self:log("loss", loss, {on_step = true, on_epoch = true})
  self:log("count", batch[1].shape[1], {on_step = false, on_epoch = true, reduce_fx = "sum"})
  return loss
end
function Chain:validation_step(batch)
  self:log("val_loss", (self(batch[1]) - 1):square():mean())
end
Chain.test_step = Chain.validation_step
function Chain:predict_step(batch) return self(batch[1]) end
function Chain:configure_optimizers()
  return lt.optim.AdamW({{params = self.blocks:parameters(), lr = 0.02},
    {params = {self.embed.weight, self.embed.bias, self.head.weight, self.unused}}}, {lr = 0.01})
end
lt.seed(5)
local x = lt.randn(36, 6):to "f64"
local function loader(o)
  local all = {global_batch_size = 8, shuffle = true, seed = 3}
  for name, value in pairs(o or {}) do all[name] = value end
  return lt.data.DataLoader(lt.data.TensorDataset(x), all)
end
local function pipeline(o)
  local all = {"pipeline", microbatches = 4}
  for name, value in pairs(o or {}) do all[name] = value end
  return all
end
-- A net that was fitted: on so many ranks, with options of the net, of the Trainer, of fit.
local function fit(strategy, ranks, o, options, fit_options)
  lt.seed(1)
  local net, all = (o and o.class or Chain)(o), {strategy = strategy, devices = ranks,
    max_epochs = 2}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, loader(), loader {shuffle = false}, fit_options)
  return net, t
end
-- The largest difference of two states, and of what was logged.
local function apart(a, b)
  local most = 0.0
  for key, value in pairs(a) do
    assert(b[key] ~= nil, key)
    local by = 0.0
    if lt.is_tensor(value) then by = (value - b[key]):abs():max():item()
    elseif type(value) == "table" then by = apart(value, b[key])
    elseif type(value) == "number" then by = math.abs(value - b[key]) end
    most = by == by and math.max(most, by) or math.huge
  end
  return most
end
local LOGGED = {"loss_epoch", "count", "val_loss"}
local function is_equal(a, t, b, u)
  local most = math.max(apart(a:state_dict(), b:state_dict()),
    apart(t.optimizers[1]:state_dict(), u.optimizers[1]:state_dict()))
  for _, name in ipairs(LOGGED) do
    most = math.max(most, math.abs(t.callback_metrics[name] - u.callback_metrics[name]))
  end
  return most < 1e-9
end
-- Whether a fit in a pipeline is that of one process, or of `first`.
local function same(ranks, o, net_options, options, first)
  local a, t = fit(first or "single_device", 1, net_options, options)
  local b, u = fit(pipeline(o), ranks, net_options, options)
  return is_equal(a, t, b, u) and "same" or "other"
end
]]

local scripts <const> = trained.with(NET)

local net = { scripts = scripts }

--- The script prints that, on ranks that it says itself.
function net.prints(wanted, script)
  local out, err = scripts.output(nil, script)
  luassert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

--- The script fails with words that match the pattern.
function net.fails(words, script)
  local status, _, err = scripts.run(nil, script)
  luassert.equal(1, status, err)
  luassert.matches(words, err)
  return err
end

return net
