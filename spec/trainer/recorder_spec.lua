-- spec/trainer/recorder_spec.lua: fits on a device that records work and runs it a batch at a time
-- (backend.h, whole_storages): the fake one with LT_FAKE_RECORDS=1, whose addresses cannot be read.
-- tags: slow
local child = require "spec.cli.child"
local trained = require "spec.dist.trained"

local BEGINNING <const> = trained.prelude .. ([[
local counts = require "ltrain.c".runtime.fake_counts
local Net = lt.Module:extend("Net")
function Net:init()
  self.hidden, self.last = lt.nn.Linear(8, 16), lt.nn.Linear(16, 3)
  self.accuracy = lt.metrics.Accuracy()
end
function Net:training_step(batch)
  local y = self.last(self.hidden(batch[1]):relu())
  return lt.cross_entropy(y, batch[2])
end
function Net:validation_step(batch)
  self:log("val_loss", self:training_step(batch))
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local function loader(n)
  lt.seed(1)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.randn(8 * (n or 20), 8),
    lt.randint(0, 3, {8 * (n or 20)})), {batch_size = 8})
end
local function on(device, o)
  o = o or {}
  o.accelerator = {device = function() return device end}
  return trainer(o)
end
]]):gsub("%s*\n%s*", " ")

local function output(script, env)
  local folder = child.folder()
  child.write(folder .. "/script.lua", BEGINNING .. script)
  env = env or { LT_FAKE_RECORDS = "1", LT_TEST_DEVICE = "" }
  local status, out, err = child.run({ "run", "script.lua" }, { dir = folder, env = env })
  child.remove(folder)
  assert.equal(0, status, err)
  return out
end

describe("a device that records", function()
  it("runs what a batch has recorded at its end, at once", function()
    assert.equal("1 1 1 1\n", output [[
      local net, seen = Net(), {}
      local last
      function net:on_train_batch_start(batch, k)
        local now = counts().cuts
        if last and k > 1 and k < 6 then seen[#seen + 1] = now - last end
        last = now
      end
      on("fake", {gradient_clip_val = 1.0, nonfinite = "stop"}):fit(net, loader())
      print(table.concat(seen, " "))
    ]])
  end)
end)
