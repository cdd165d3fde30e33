-- spec/xla/features_spec.lua: what a run has beside its steps works on an XLA device as on others:
-- precisions, checkpoints, ONNX files, the debugger, the dashboard.
-- tags: half, slow, unsanitized
local child = require "spec.cli.child"
local evaluate = require "spec.onnx.evaluate"
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"
local read = require "spec.onnx.reader"
local servers = require "spec.apps.dashboard.server"
local tiny = require "spec.trainer.tiny"

local nn <const> = lt.nn
local LTRAIN <const> = os.getenv "LTRAIN" or "ltrain"

local Net = lt.Module:extend("Net")
function Net:init()
  lt.seed(3)
  self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))
  self.losses = {}
end
function Net:training_step(batch)
  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])
  self.losses[#self.losses + 1] = loss:detach()
  return loss
end
function Net:predict_step(batch) return self.layers(batch[1]) end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-2 }) end

-- Batches of 16 samples.
local function data(count)
  lt.seed(5)
  local list = {}
  for k = 1, count do list[k] = { lt.randn(16, 8), lt.randint(0, 4, { 16 }) } end
  return list
end

-- A fit of `count` batches: the module, its losses, the Trainer.
local function fit(count, o, arguments)
  local net, batches, losses = Net(), data(count), {}
  lt.seed(7)
  local trainer = tiny.trainer(o)
  trainer:fit(net, batches, arguments)
  for k, loss in ipairs(net.losses) do losses[k] = loss:item() end
  return net, losses, trainer
end

local function same_state(want, got)
  for name, value in pairs(want) do
    assert.same(value:to("cpu"):tolist(), got[name]:to("cpu"):tolist(), name)
  end
end

local test <const> = plugin.it

describe("on xla", function()
  for precision, dtype in pairs { ["bf16-true"] = "bf16", ["bf16-mixed"] = "f32" } do
    test("precision = '" .. precision .. "' has the CPU's losses, to the digits of bf16", function()
      local _, want = fit(10, { accelerator = "cpu", precision = precision })
      local net, got = fit(10, { accelerator = "xla", precision = precision })
      assert.equal(dtype, net.layers[1].weight.dtype)
      assert.is_true(got[10] ~= got[1])
      for k = 1, 10 do assert.near(want[k], got[k], 2e-2, "step " .. k) end
    end)
  end

  test("a run that is resumed from a checkpoint has the bits of one that was not cut", function()
    local path = os.tmpname()
    local whole = fit(8, { accelerator = "xla" })
    local half, _, trainer = fit(8, { accelerator = "xla", max_steps = 4 })
    trainer:save_checkpoint(path)
    local resumed, losses = fit(8, { accelerator = "xla" }, { ckpt_path = path })
    assert.equal(4, #losses)
    same_state(whole:state_dict(), resumed:state_dict())
    same_state(half:state_dict(), Net:load_from_checkpoint(path):state_dict())
    os.remove(path)
  end)

  test("a module is exported to ONNX with its weights and results", function()
    local path, model = os.tmpname(), nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    local x = lt.randn(5, 4)
    local want = model(x)
    model:to "xla"
    lt.onnx.export(model, x:to "xla", path)
    local file = read(path)
    os.remove(path)
    assert.same({ "Gemm", "Relu", "Gemm", "Identity" }, file.ops)
    local got = evaluate(file, { x })[1]
    assert.is_true((got - want):abs():max():item() < 1e-6)
  end)

  test("a breakpoint shows values of the step, and the step ends as without it", function()
    local folder = child.folder()
    child.write(folder .. "/model.lua", [[
local lt = require "ltrain"
lt.seed(1)
local model = lt.nn.Linear(4, 2):to "xla"
local x = lt.ones(3, 4):to "xla"
local h = x * 2
lt.breakpoint()
local loss = (model(h) - 1):square():mean()
loss:backward()
print("end", h:sum():item(), model.weight.grad.shape[1])
]])
    local pipe <close> = assert(io.popen(("cd '%s' && printf '%s' | timeout 100 '%s' run model.lua "
      .. "2>&1"):format(folder, "h:sum():item()\\nh = h * 10\\n:continue\\n", LTRAIN)))
    local text = pipe:read "a"
    child.remove(folder)
    assert.matches("debug> 24.0", text, nil, true)
    assert.matches("end\t240.0\t2", text, nil, true)
  end)

  test("the dashboard shows the run's metrics", function()
    local why = servers.missing()
    if why then return pending(why) end
    local folder = child.folder()
    child.write(folder .. "/model.lua", [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(8, 4) end
function Net:training_step(x)
  local loss = self.layer(x):square():mean()
  self:log("loss", loss)
  return loss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
lt.seed(1)
local list = {}
for k = 1, 6 do list[k] = lt.ones(4, 8) end
lt.Trainer{accelerator = "xla", max_epochs = 1, log_every_n_steps = 1}:fit(Net(), list)
]])
    assert(os.execute(("cd '%s' && timeout 100 '%s' run model.lua >out 2>&1"):format(folder,
      LTRAIN)))
    local server = servers.start(folder)
    server:enter()
    local id = server:id "version_0"
    local series = server:json(("/api/run/%s/metrics?name=loss"):format(id)).series[1]
    server:stop()
    child.remove(folder)
    assert.equal(6, series.count)
    for k = 2, 6 do assert.is_true(series.y[k] < series.y[k - 1]) end
  end)
end)
