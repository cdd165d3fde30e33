-- spec/cuda/failing_work.lua: what spec/cuda/failing_spec.lua runs with each call of the fake
-- runtime failing in turn: `ltrain failing_work.lua NAME [FOLDER]`. Prints what it computed, then
-- how many calls there were.
local counts = require "spec.cuda.counts"
local lt = require "ltrain"
local nn = lt.nn

-- Numbers that rounding does not blur: another algorithm may give other last bits.
local function show(t)
  local list = {}
  for _, v in ipairs(t:to("cpu"):to("f64"):flatten():tolist()) do
    list[#list + 1] = ("%.3f"):format(v + 0.0004)
  end
  print(table.concat(list, " "))
end

local work = {}

function work.copy()
  local x = lt.arange(0, 300):to "f32"
  local y = x:to "cuda" * 2
  show(y)
  show(y:to "cpu" + 1)
  if lt.cuda.device_count() > 1 then show(y:to "cuda:1" + 1) end
end

function work.matmul()
  local a, b = lt.randn(9, 70), lt.randn(70, 5)
  local bias = lt.randn(5)
  show(a:to "cuda":matmul(b:to "cuda"))
  show(nn.functional.linear(a:to "cuda", b:t():to "cuda", bias:to "cuda"))
  show(a:to("cuda"):to("bf16"):matmul(b:to("cuda"):to("bf16")):to("f32"):mul(0.01))
end

function work.conv()
  local x = lt.randn({ 2, 3, 6, 6 }, { device = "cuda" }):requires_grad_()
  local w = lt.randn({ 4, 3, 3, 3 }, { device = "cuda" }):requires_grad_()
  local y = lt.conv2d(x, w, nil, { padding = 1 })
  y:sum():backward()
  show(y)
  show(x.grad)
  show(w.grad)
end

local Net <const> = lt.Module:extend "Net"

function Net:init()
  self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
end

function Net:training_step(batch)
  local loss = nn.functional.cross_entropy(self.layers(batch[1]), batch[2])
  self:log("loss", loss)
  return loss
end

function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.01 }) end

local function fit(net, options)
  local data = {}
  for k = 1, 4 do data[k] = { lt.randn(5, 6), lt.randint(0, 3, { 5 }) } end
  local trainer = lt.Trainer(options)
  trainer:fit(net, data)
  return trainer
end

local function options(folder)
  return {
    accelerator = "cuda", devices = 1, max_epochs = 2, logger = false, default_root_dir = folder,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
  }
end

local function show_all(net)
  for _, p in ipairs(net:parameters()) do show(p) end
end

function work.fit(folder)
  local net = Net()
  fit(net, options(folder))
  show_all(net)
end

function work.checkpoint(folder)
  local net, path = Net(), folder .. "/it.ckpt"
  local trainer = fit(net, options(folder))
  trainer:save_checkpoint(path)
  local other = Net:load_from_checkpoint(path)
  show_all(other)
  show_all(other:to "cuda")
end

lt.seed(3)
work[arg[1]](arg[2])
print(("%d calls"):format(counts().calls))
