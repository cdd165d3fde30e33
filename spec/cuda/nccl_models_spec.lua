-- spec/cuda/nccl_models_spec.lua: models of many kinds are trained to the same bits on 1, 2 and 4
-- GPUs, an everyday run to those on 1 and on one of the others. One script fits them all.
-- tags: sampled, slow
local trained = require "spec.dist.trained"
local turns = require "spec.turns"

local SCRIPT <const> = [[
local nn, checkpoint = lt.nn, lt.nn.utils.checkpoint
lt.seed(1)
local x = lt.randn(32, 4)
local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to("i64"))

local function mlp(self)
  self.a, self.b, self.drop = nn.Linear(4, 8), nn.Linear(8, 2), nn.Dropout(0.3)
end
local function forward(self, x) return self.b(self.drop(self.a(x):relu())) end

local models = {}
local function add(name, init, forward, o)
  local Net = lt.Module:extend "Net"
  Net.init, Net.forward, o = init, forward, o or {}
  function Net:training_step(batch, i)
    local loss = lt.cross_entropy(self(batch[1]), batch[2]) * (i == o.bursts and 1e30 or 1)
    self:log("loss", loss, {on_step = false, on_epoch = true})
    return loss
  end
  function Net:configure_optimizers()
    local adam = lt.optim.Adam(self:parameters(), {lr = 1e-2})
    local scheduler = lt.optim.StepLR(adam, 2, {gamma = 0.5})
    return {optimizer = adam, lr_scheduler = {scheduler = scheduler, interval = "step"}}
  end
  models[#models + 1] = {name, Net, o}
  return Net
end

add("norm", function(self)
  self.conv, self.norm, self.out = nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.Linear(4, 2)
end, function(self, x)
  local y = self.norm(self.conv(x:reshape {-1, 1, 2, 2})):relu()
  return self.out(y:reshape {-1, 4})
end)
add("dropout", mlp, forward)
add("windows", mlp, forward, {accumulate_grad_batches = 3, gradient_clip_val = 0.05})
add("bf16", mlp, forward, {precision = "bf16-mixed"})
add("16", mlp, forward, {precision = "16-mixed", bursts = 2})
add("16 in windows", mlp, forward,
  {precision = "16-mixed", accumulate_grad_batches = 2, gradient_clip_val = 0.05, bursts = 1})
add("recomputed", mlp, function(self, x)
  local y = checkpoint(function(x) return self.drop(self.a(x):gelu()) end, x)
  return self.b(y)
end)
add("unused", function(self)
  mlp(self)
  self.never, self.at_times = nn.Linear(3, 3), nn.Linear(4, 2)
end, function(self, x)
  local y = forward(self, x)
  return self.trainer.global_step % 2 == 0 and y + self.at_times(x) or y
end)
add("tied", function(self)
  self.embed, self.out = nn.Embedding(8, 6), nn.Linear(6, 8, {bias = false})
  self.out.weight = self.embed.weight
end, function(self, x)
  local y = self.out(self.embed((x * 2):floor():to("i64"):clamp(0, 7)))
  return y:mean(2)
end)
add("zero1", mlp, forward, {strategy = n > 1 and "zero1" or nil})

-- Sums of small multiples of powers of two have one value, in any order.
local Two = add("two optimizers", function(self)
  self.automatic_optimization = false
  self.a = lt.parameter(lt.full({4}, 0.5, {dtype = "f64"}))
  self.b = lt.parameter(lt.full({4}, 0.25, {dtype = "f64"}))
end, nil, {deterministic = true})
function Two:training_step(batch)
  local x = (batch[1]:to("f64") * 4):floor() / 4
  for i, optimizer in ipairs(self:optimizers()) do
    optimizer:zero_grad()
    self:manual_backward((x * (i == 1 and self.a or self.b)):sum(2):mean())
    optimizer:step()
  end
end
function Two:configure_optimizers()
  return {lt.optim.SGD({self.a}, {lr = 0.125}), lt.optim.SGD({self.b}, {lr = 0.25})}
end

local lines = {}
for _, model in ipairs(models) do
  local name, Net, o = table.unpack(model)
  local options = {deterministic = "world", devices = n, accelerator = "gpu"}
  for key, value in pairs(o) do options[key] = key ~= "bursts" and value or nil end
  lt.seed(3)
  local net, t = Net(), trainer(options)
  t:fit(net, lt.data.DataLoader(data, {global_batch_size = 8, shuffle = true}))
  lines[#lines + 1] = ("%s: %s, %d steps, scale %s, loss %s"):format(name,
    lt.hash(net:to("cpu"):state_dict()), t.global_step, t.scaler and t.scaler:get_scale(),
    t.callback_metrics.loss)
end
if lt.dist.rank() == 0 then print(table.concat(lines, "\n")) end
]]

describe("a fit on 1, 2 and 4 GPUs", function()
  it("has the same weights, steps, scale and loss, whatever the model", function()
    local scripts <const> = trained.with(SCRIPT)
    local printed = scripts.output(1, "")
    turns({ 2, 4 }, 1, function(n) assert.equal(printed, (scripts.output(n, ""))) end)
    assert.matches("16: %x+, %d+ steps, scale %d+%.0, loss", printed)
    assert.equal(11, select(2, printed:gsub("\n", "")))
  end)
end)
