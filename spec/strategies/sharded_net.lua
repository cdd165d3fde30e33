-- spec/strategies/sharded_net.lua: the net, the fits and the scripts of the specs of Sharded.
local luassert = require "luassert"
local trained = require "spec.dist.trained"

-- Sizes that nothing divides, a parameter that nobody uses, two groups.
local NET <const> = [[
local nn = lt.nn
local rank = lt.dist.rank
local Net = lt.Module:extend("Net")
function Net:init(o)
  self.o = o or {}
  self.a, self.b, self.c = nn.Linear(7, 13), nn.Linear(13, 5), nn.Linear(5, 1)
  self.unused = lt.parameter(lt.ones(3))
end
function Net:forward(x)
  local h = self.a(x):tanh()
  local y = self.c(self.b(h):tanh())
  return y
end
function Net:training_step(batch) return (self(batch[1]) - 1):square():mean() end
function Net:configure_optimizers()
  local b, c = self.b, self.c
  return lt.optim[self.o.optimizer or "Adam"]({{params = self.a:parameters()},
    {params = {b.weight, b.bias, c.weight, c.bias, self.unused}, lr = 0.02, weight_decay = 0.1}},
    {lr = 0.01, momentum = self.o.momentum})
end
lt.seed(5)
local x = lt.randn(72, 7)
local function loader(o)
  local all = {batch_size = 4}
  for name, value in pairs(o or {}) do all[name] = value end
  return lt.data.DataLoader(lt.data.TensorDataset(x), all)
end
-- A net that was fitted: options of the net, of the Trainer, of fit, of the loader.
local function fit(strategy, o, options, fit_options, loader_options)
  lt.seed(1)
  local net, all = (o and o.class or Net)(o), {strategy = strategy, max_epochs = 2}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, loader(loader_options), nil, fit_options)
  return net, t
end
-- Weights, and what the optimizers keep, as one text.
local function bits(net, t)
  local parts = {lt.hash(net:state_dict())}
  for i, optimizer in ipairs(t.optimizers) do parts[i + 1] = lt.hash(optimizer:state_dict()) end
  return table.concat(parts, " ")
end
local function same(o, options)
  local wanted, got = bits(fit("ddp", o, options)), bits(fit("zero1", o, options))
  return wanted == got and "same" or "other"
end
-- Bytes that the optimizers of a Trainer hold here.
local SIZE = {f64 = 8, f32 = 4}
local function held(t)
  local bytes = 0
  for _, optimizer in ipairs(t.optimizers) do
    for _, slots in pairs(optimizer.state) do
      for _, value in pairs(slots) do
        if lt.is_tensor(value) then bytes = bytes + value:numel() * SIZE[value.dtype] end
      end
    end
  end
  return bytes
end
local function error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert(not ok, "no error")
  return tostring(message)
end
]]

-- Nets of blocks, and what a fit of one gives beside DDP's.
local BLOCKS <const> = [[
local Blocks = lt.Module:extend("Blocks")
function Blocks:init(o)
  self.o = o or {}
  self.first, self.last = nn.Linear(7, 12), nn.Linear(12, 1)
  self.blocks = nn.ModuleList()
  for i = 1, 3 do
    local n = o and o.width or 5 + i
    self.blocks:append(nn.Sequential(nn.Linear(12, n), nn.Tanh(), nn.Linear(n, 12)))
  end
  self.unused = lt.parameter(lt.ones(3))
end
function Blocks:forward(x)
  x = self.first(x)
  for _, block in ipairs(self.blocks) do x = x + block(x) end
  return self.last(x)
end
function Blocks:training_step(batch) return (self(batch[1]) - 1):square():mean() end
function Blocks:validation_step(batch) self:log("val_loss", self(batch[1]):square():mean()) end
function Blocks:predict_step(batch) return self(batch[1]) end
function Blocks:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 0.01, weight_decay = 0.1})
end
-- The largest difference of weights from those of a fit under DDP, and of the optimizer's state.
local function apart(strategy, o, options)
  o = o or {}
  o.class = o.class or Blocks
  local net, t = fit(strategy, o, options)
  local ddp, d = fit("ddp", o, options)
  local most = 0
  local function compare(a, b)
    for key, value in pairs(a) do
      if lt.is_tensor(value) then
        local by = (value - b[key]):abs():max():item()
        most = by == by and math.max(most, by) or math.huge -- a NaN is far from everything
      elseif type(value) == "table" then compare(value, b[key]) end
    end
  end
  compare(net:state_dict(), ddp:state_dict())
  compare(t.optimizers[1]:state_dict().state, d.optimizers[1]:state_dict().state)
  return most
end
]]

local scripts <const> = trained.with(NET)

local function prints(wanted, n, script)
  local out, err = scripts.output(n, script)
  luassert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

local function fails(n, words, script)
  local status, _, err = scripts.run(n, script)
  luassert.equal(1, status, err)
  luassert.matches(words, err)
  return err
end

return { BLOCKS = BLOCKS, prints = prints, fails = fails, over = scripts.over }
