-- spec/xla/devices_spec.lua: several devices of XLA: in one process under the strategy "xla", and a
-- device for each rank.
-- tags: slow, sampled, unsanitized
local child = require "spec.cli.child"
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"
local sample = require "spec.sample"
local tiny = require "spec.trainer.tiny"

-- B samples of 8 features, or of 2 channels of 4 x 4; 4 classes.
local function batches(sizes, shape)
  local list = {}
  lt.seed(5)
  for k, B in ipairs(sizes) do
    list[k] = { lt.randn(B, table.unpack(shape)), lt.randint(0, 4, { B }) }
  end
  return list
end

local Net = lt.Module:extend("Net")
function Net:init(layers) self.layers, self.losses = layers, {} end
function Net:training_step(batch)
  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])
  self.losses[#self.losses + 1] = loss:detach()
  return loss
end
function Net:predict_step(batch) return self.layers(batch[1]) end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-2 }) end

local nn <const> = lt.nn
local MODELS <const> = {
  mlp = { shape = { 8 }, make = function()
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
  end },
  ["conv and batch norm"] = { shape = { 2, 4, 4 }, make = function()
    return nn.Sequential(nn.Conv2d(2, 8, 3, { padding = 1, bias = false }), nn.BatchNorm2d(8),
      nn.ReLU(), nn.Flatten(), nn.Linear(128, 4))
  end },
}

-- A fit of a model: its losses, the Trainer's notes, the module, the Trainer.
local function fit(model, sizes, o)
  lt.seed(3)
  local net, notes, list = Net(model.make()), {}, {}
  local trainer = tiny.trainer(o)
  trainer.note = function(_, text) notes[#notes + 1] = text end
  trainer:fit(net, batches(sizes, model.shape))
  for k, loss in ipairs(net.losses) do list[k] = loss:item() end
  return list, notes, net, trainer
end

local function same_values(want, got, tolerance)
  assert.equal(#want, #got)
  for k = 1, #want do
    assert.near(want[k], got[k], tolerance * (1 + math.abs(want[k])), "step " .. k)
  end
end

local TWENTY <const> = {}
for k = 1, 20 do TWENTY[k] = 16 end

local test <const> = plugin.it

describe("strategy = 'xla'", function()
  for _, name in ipairs(sample({ "mlp", "conv and batch norm" }, 2)) do
    local model = MODELS[name]
    test("computes on 1, 2 and 4 devices the same: " .. name, function()
      local one = fit(model, TWENTY, { strategy = "xla", devices = 1 })
      local two = fit(model, TWENTY, { strategy = "tpu_spawn", devices = 2 })
      local four, notes, net, trainer = fit(model, TWENTY, { strategy = "xla", devices = 4 })
      same_values(one, two, 1e-6)
      same_values(one, four, 1e-6)
      same_values(fit(model, TWENTY, { accelerator = "cpu", devices = 1 }), four, 1e-5)
      assert.matches("4 devices compute each batch together, 1 / 4 each: the loader's batch_size "
        .. "is that of all", notes[1])
      assert.same({ 0, 1, 2, 3 }, trainer.device_ids)
      assert.equal("xla:0", net.device)
    end)
  end

  test("computes all of a batch on each device that they do not divide, and says so once",
    function()
      local sizes, o = { 16, 6, 16, 6 }, { strategy = "xla", devices = 4 }
      local want = fit(MODELS.mlp, sizes, { accelerator = "cpu", devices = 1 })
      local got, notes = fit(MODELS.mlp, sizes, o)
      same_values(want, got, 1e-5)
      local said = {}
      for _, text in ipairs(notes) do said[text] = true end
      assert.is_true(said["strategy = 'xla': 4 devices do not divide batches of 6 samples: each "
        .. "device computes all of such a batch"])
    end)

  test("divides parameters and states with shard_parameters, which checkpoints have whole",
    function()
      local o = { strategy = { "xla", shard_parameters = true }, devices = 4 }
      local want, _, plain = fit(MODELS.mlp, TWENTY, { strategy = "xla", devices = 1 })
      local got, _, net = fit(MODELS.mlp, TWENTY, o)
      same_values(want, got, 1e-6)
      for name, value in pairs(net:state_dict()) do
        assert.is_true((value - plain:state_dict()[name]:to("xla")):abs():max():item() < 1e-5)
      end
    end)

  test("predicts on all devices, in the order of the samples", function()
    local model = MODELS.mlp
    local data = batches({ 8, 8 }, model.shape)
    local function predict(o)
      lt.seed(3)
      return tiny.trainer(o):predict(Net(model.make()), data)
    end
    local want = predict { accelerator = "cpu", devices = 1 }
    for k, y in ipairs(predict { accelerator = "xla", devices = 2 }) do
      assert.is_true((y:to("cpu") - want[k]):abs():max():item() < 1e-6)
    end
  end)

  test("refuses more devices than there are", function()
    local ok, err = pcall(fit, MODELS.mlp, { 16 }, { strategy = "xla", devices = 9 })
    assert.is_false(ok)
    assert.matches("xla: there are %d devices, and 9 are wanted: .*cpu_device_count", tostring(err))
  end)

  test("wants devices of XLA", function()
    assert.matches("strategies.XLA: computes on devices of XLA: write accelerator = 'xla'",
      tiny.error_of(lt.Trainer, { strategy = "xla", accelerator = "cpu" }))
  end)
end)

-- On `N` ranks of 16 / N samples a batch; prints the epoch's loss and the sum of the weights.
local RANKS <const> = [[
local lt = require "ltrain"
local N, kind = %d, "%s"
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(8, 4) end
function Net:training_step(batch)
  local loss = lt.cross_entropy(self.fc(batch[1]), batch[2])
  self:log("loss", loss, {on_epoch = true, on_step = false})
  return loss
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
lt.seed(5)
local net = Net()
local data = lt.data.TensorDataset(lt.randn(80, 8), lt.randint(0, 4, {80}))
local trainer = lt.Trainer{logger = false, max_epochs = 2, enable_checkpointing = false,
  enable_progress_bar = false, accelerator = kind, devices = N, strategy = "ddp"}
trainer:fit(net, lt.data.DataLoader(data, {batch_size = 16 // N}))
if lt.dist.rank() == 0 then
  print(("loss %%.9g weights %%.9g"):format(trainer.callback_metrics.loss,
    net.fc.weight:sum():item()))
end
]]

-- What a script prints, errors included.
local function run(script)
  local path = os.tmpname()
  child.write(path, script)
  local pipe <close> = assert(io.popen(("timeout 120 %s run %s 2>&1"):format(
    os.getenv "LTRAIN" or "ltrain", path)))
  local text = pipe:read "a"
  os.remove(path)
  return text
end

describe("docs/guide/xla.md", function()
  test("has an example that trains on 4 devices", function()
    local file <close> = assert(io.open "docs/guide/xla.md")
    local script = file:read("a"):match "```lua file=devices.lua\n(.-)```"
    local text = run(script .. "print('global step', trainer.global_step)")
    assert.matches("global step\t4", text)
    assert.matches("4 devices compute each batch together", text)
  end)
end)

describe("ranks on XLA", function()
  local function train(n, kind)
    local text = run(RANKS:format(n, kind))
    local loss, weights = text:match "loss (%S+) weights (%S+)"
    assert.is_truthy(loss, text)
    return { tonumber(loss), tonumber(weights) }, text
  end

  test("have a device each, and copy their messages through the host: the CPU's results", function()
    local want = train(1, "cpu")
    local got, text = train(2, "xla")
    same_values(want, got, 1e-6)
    local _, times = text:gsub("collectives copy it through host memory", "")
    assert.equal(1, times, text)
  end)
end)
