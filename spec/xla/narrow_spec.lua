-- spec/xla/narrow_spec.lua: plugins without f64 train: no program and no copy has any
-- (narrow_plugin.c refuses them), and a script that makes an f64 tensor hears of it.
-- tags: slow, unsanitized
local child = require "spec.cli.child"
local plugin = require "spec.xla.plugin"

local ROOT <const> = os.getenv "LT_ROOT" or os.getenv "PWD"
local BUILD <const> = os.getenv "LT_BUILD" or "build"

-- The plugin that this process uses.
local function wide_plugin()
  local file <close> = assert(io.open "/proc/self/maps")
  return file:read("a"):match "(/%S*pjrt%S*%.so)"
end

-- Trains models of ten_models.lua on the CPU and on the device, with what users log; prints how far
-- the losses are from the CPU's, of themselves.
local TRAIN <const> = [[
local lt = require "ltrain"
package.path = %q .. "/?.lua;" .. package.path
local ten = require "spec.xla.ten_models"
local Net = lt.Module:extend("Net")
function Net:init(row)
  self.net, self.loss_of, self.optimizer_of = row[3](), row[5], row[6]
  self.losses, self.seen = {}, lt.metrics.Perplexity()
end
function Net:training_step(batch)
  local loss = self.loss_of(self.net, batch[1], batch[2])
  self:log("loss", loss, { on_step = true, on_epoch = true })
  local n = batch[2]:numel()
  self.seen:update(self.net(batch[1]):detach():reshape(1, n, -1), batch[2]:reshape(1, n))
  self:log("seen", self.seen, { on_step = false, on_epoch = true })
  self.losses[#self.losses + 1] = loss:detach()
  return loss
end
function Net:configure_optimizers() return self.optimizer_of(self.net) end
local function train(row, device, options)
  lt.seed(1)
  local net, batches = Net(row), {}
  for k = 1, 4 do batches[k] = { row[4]() } end
  local trainer = lt.Trainer { accelerator = device, max_epochs = 1, logger = false,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
    gradient_clip_val = 1, log_every_n_steps = 1, precision = options }
  trainer:fit(net, batches)
  for k, loss in ipairs(net.losses) do net.losses[k] = loss:item() end
  table.insert(net.losses, trainer.callback_metrics.loss_epoch)
  table.insert(net.losses, trainer.callback_metrics.seen)
  return net.losses
end
for _, name in ipairs { %s } do
  for _, row in ipairs(ten) do
    if row[1] == name then
      for precision, tolerance in pairs { ["32-true"] = 1e-5, ["bf16-mixed"] = 5e-2 } do
        local far, want = 0, train(row, "cpu", precision)
        for k, loss in ipairs(train(row, "xla", precision)) do
          far = math.max(far, math.abs(loss / want[k] - 1))
        end
        print(name, precision, #want, far <= tolerance and "as the CPU" or far)
      end
    end
  end
end
]]

describe("a plugin without f64", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local test <const> = plugin.it

  local function run(script)
    child.write(folder .. "/script.lua", script)
    return child.run({ "run", "script.lua" }, { dir = folder, seconds = 300, env = {
      LTRAIN_PJRT_PLUGIN = BUILD .. "/spec/c/narrow_pjrt.so", LTRAIN_WIDE_PJRT = wide_plugin() } })
  end

  for _, name in ipairs { "mlp", "digits", "char_gpt" } do
    test("trains in f32 and bf16 with the CPU's losses: " .. name, function()
      local status, out, err = run(TRAIN:format(ROOT, ("%q"):format(name)))
      assert.equal(0, status, err)
      local lines = {}
      for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
      table.sort(lines)
      assert.same({ name .. "\t32-true\t6\tas the CPU", name .. "\tbf16-mixed\t6\tas the CPU" },
        lines)
    end)
  end

  test("draws the CPU's random numbers, normals to 1e-6", function()
    local status, out, err = run [[
      local lt = require "ltrain"
      local function far(fn)
        lt.seed(3)
        local want = fn "cpu"
        lt.seed(3)
        return (fn "xla":to "cpu":to "f32" - want:to "f32"):abs():max():item()
      end
      print(far(function(device) return lt.rand(1001, { device = device }) end))
      print(far(function(device) return lt.randn(100001, { device = device }) end) < 1e-6)
      print(far(function(device) return lt.randint(0, 1000, { 99 }, { device = device }) end))
      print(far(function(device) return lt.bernoulli(lt.linspace(0, 1, 999):to(device)) end))
      for _, p in ipairs { 0.1, 1 / 3, 0.999999 } do
        print(far(function(device) return lt.dropout(lt.ones(9999):to(device), p) end))
      end
      print(pcall(function() return lt.bernoulli(lt.tensor { -1.5 }:to "xla"):tolist() end))
    ]]
    assert.equal(0, status, err)
    assert.equal("0.0\ntrue\n0.0\n0.0\n0.0\n0.0\n0.0\n", (out:gsub("false\t.*", "")))
    assert.matches("probabilities must be in 0..1: got -1.5", out, 1, true)
  end)

  test("refuses f64 tensors of scripts in a sentence, and computes with those of the library",
    function()
      local status, out, err = run [[
        local lt = require "ltrain"
        local x = lt.tensor { 1, 2, 3 }:to "xla"
        for _, make in ipairs {
          function() return lt.zeros(2, { dtype = "f64", device = "xla" }) end,
          function() return x:to "f64" end,
          function() return lt.ones(2, { dtype = "f64" }):to "xla" end,
          function() return lt.nn.Linear(2, 2):double():to "xla" end,
        } do
          print(select(2, pcall(make)))
        end
        local mean = lt.metrics.Mean()
        mean:update(x)
        print(tonumber(mean:compute()) or mean:compute():item())
        print(x:sum():item(), x:tolist()[2])
      ]]
      assert.equal(0, status, err)
      local sentence = "xla:0 has no f64: use f32 or bf16, or leave the tensor on the CPU"
      for line = 4, 6 do
        assert.matches(("script.lua:%d: %s\n"):format(line, sentence), out, 1, true)
      end
      assert.matches(sentence .. " (in Linear)\n2.0\n6\t2\n", out, 1, true)
    end)

  test("has f64 where the plugin has it", function()
    local lt = require "ltrain"
    local x = lt.tensor({ 1 + 2.0 ^ -40 }, { dtype = "f64" }):to "xla"
    assert.equal(1 + 2.0 ^ -39, (x * 2 - 1):item())
  end)
end)
