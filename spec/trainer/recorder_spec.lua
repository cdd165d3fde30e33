-- spec/trainer/recorder_spec.lua: fits on a device that records work and runs it a batch at a time
-- (backend.h, whole_storages): the fake one with LT_FAKE_RECORDS=1, whose addresses cannot be read.
-- tags: slow
local child = require "spec.cli.child"
local trained = require "spec.dist.trained"

local BEGINNING <const> = trained.prelude .. ([[
local counts = require "ltrain.c".runtime.fake_counts
local device = os.getenv "DEVICE"
lt.seed(1)
local Net = lt.Module:extend("Net")
function Net:init()
  self.conv, self.norm = lt.nn.Conv2d(1, 4, 3), lt.nn.BatchNorm2d(4)
  self.hidden, self.last = lt.nn.Linear(64, 16), lt.nn.Linear(16, 3)
  self.accuracy, self.mean = lt.metrics.Accuracy(), lt.metrics.Mean()
  self.val_accuracy = lt.metrics.Accuracy()
end
function Net:forward(x)
  return self.last(lt.dropout(self.hidden(self.norm(self.conv(x)):relu():reshape{-1, 64}), 0.1,
    self.training):relu())
end
function Net:training_step(batch)
  local y = self(batch[1])
  local loss = lt.cross_entropy(y, batch[2])
  self.accuracy:update(y, batch[2])
  self.mean:update(loss)
  self:log("loss", loss, {on_step = true, on_epoch = true, prog_bar = true})
  self:log("acc", self.accuracy, {on_step = false, on_epoch = true, prog_bar = true})
  self:log("mean", self.mean, {on_step = false, on_epoch = true})
  return loss
end
function Net:validation_step(batch)
  local y = self(batch[1])
  self.val_accuracy:update(y, batch[2])
  self:log("val_acc", self.val_accuracy)
  self:log("val_loss", lt.cross_entropy(y, batch[2]))
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local function loader(n)
  n = (n or 20) * 8
  return lt.data.DataLoader(lt.data.TensorDataset(lt.randn(n, 1, 6, 6), lt.randint(0, 3, {n})),
    {batch_size = 8})
end
local function on(o)
  o = o or {}
  o.accelerator = {device = function(_, rank) return device == "cpu" and "cpu" or "fake:" .. rank
    end}
  return trainer(o)
end
local function count_steps(net)
  local last, most = nil, {cuts = 0, waits = 0}
  function net:on_train_batch_start(_, k)
    local now = counts()
    if last and k > 1 then
      most.cuts = math.max(most.cuts, now.cuts - last.cuts)
      most.waits = most.waits + now.waits - last.waits
    end
    last = k < 19 and now or nil
  end
  return most
end
local function show(net, t)
  for name, p in net:named_parameters() do print(name, ("%a"):format(p:double():sum():item())) end
  for _, name in ipairs {"loss_epoch", "acc", "mean", "val_acc", "val_loss"} do
    local value = t.callback_metrics[name]
    print(name, value and ("%a"):format(value))
  end
end
]]):gsub("%s*\n%s*", " ")

local function output(script, device)
  local folder = child.folder()
  child.write(folder .. "/script.lua", BEGINNING .. script)
  local env = { LT_FAKE_RECORDS = "1", DEVICE = device or "fake" }
  local status, out, err = child.run({ "script.lua" }, { dir = folder, env = env })
  child.remove(folder)
  assert.equal(0, status, err)
  return out
end

-- What the fit of a script, with these options of the Trainer, needs from its third step on: the
-- most cuts a step, and the waits of all together.
local function needs(options, before)
  return output((before or "") .. [[
    local net = Net()
    local most = count_steps(net)
    on(]] .. options .. [[):fit(net, loader())
    io.write(most.cuts, " ", most.waits)
  ]])
end

describe("a device that records", function()
  it("runs what a batch has recorded at once, at its end, and the host waits for nothing",
    function()
      assert.equal("1 0", needs "{log_every_n_steps = 1000}")
      assert.equal("1 0", needs "{gradient_clip_val = 1.0, nonfinite = 'stop'}")
      assert.equal("1 0", needs "{gradient_clip_val = 1.0, nonfinite = 'skip'}")
      assert.equal("1 0", needs "{accumulate_grad_batches = 3, nonfinite = 'stop'}")
      assert.equal("1 0", needs "{precision = '16-mixed'}")
      assert.equal("1 0", needs "{precision = 'bf16-mixed', enable_progress_bar = true}")
    end)

  it("runs the steps of several optimizers of a batch at once", function()
    assert.equal("1 0", needs("{nonfinite = 'stop'}", [[
      Net.automatic_optimization = false
      function Net:configure_optimizers()
        return {lt.optim.SGD(self.conv:parameters(), {lr = 0.1}),
          lt.optim.AdamW(self.last:parameters(), {lr = 0.1})}
      end
      local step = Net.training_step
      function Net:training_step(batch)
        for _, optimizer in ipairs(self:optimizers()) do
          optimizer:zero_grad()
          self:manual_backward(step(self, batch))
          optimizer:step()
        end
      end
    ]]))
  end)

  it("does not wait for what it logs", function()
    for _, every in ipairs { 1, 5 } do
      assert.equal("1 0", needs(("{log_every_n_steps = %d, nonfinite = 'stop', "
        .. "logger = lt.Logger()}"):format(every)))
    end
  end)

  it("has the CPU's results", function()
    local script <const> = [[
      local net, t = Net(), on {max_epochs = 2, gradient_clip_val = 1.0, nonfinite = "stop",
        val_check_interval = 10}
      t:fit(net, loader(), loader(3))
      show(net, t)
      print(net(lt.ones(1, 1, 6, 6):to(net.device)):detach():tolist()[1][1])
    ]]
    assert.equal(output(script, "cpu"), output(script))
  end)

  it("saves checkpoints, with files written beside the fit, and resumes", function()
    local script <const> = [[
      local o = {max_epochs = 1, enable_checkpointing = true, default_root_dir = "."}
      local save = lt.callbacks.ModelCheckpoint{dirpath = "saved", every_n_train_steps = 7,
        save_last = true, save_top_k = -1}
      o.callbacks = {save}
      local net, t = Net(), on(o)
      t:fit(net, loader(), loader(3))
      show(net, t)
      local again = Net()
      t = on {max_epochs = 2}
      t:fit(again, loader(), loader(3), {ckpt_path = "saved/last.ckpt"})
      show(again, t)
    ]]
    assert.equal(output(script, "cpu"), output(script))
  end)

  it("has ranks, over memory of the host", function()
    local script <const> = [[
      local net, t = Net(), on {devices = 2, deterministic = true}
      t:fit(net, loader(), loader(4))
      if lt.dist.rank() == 0 then show(net, t) end
    ]]
    assert.equal(output(script, "cpu"), output(script))
  end)

  it("runs what a script without a Trainer records at each step of its optimizer", function()
    assert.equal("1 1 1 1 1 1 0", output [[
      local model = lt.nn.Linear(4, 1):to "fake"
      local optimizer = lt.optim.SGD(model:parameters(), {lr = 0.1})
      local before, seen = counts(), {}
      for k = 1, 6 do
        local now = counts().cuts
        local loss = model(lt.ones(2, 4):to "fake"):square():mean()
        optimizer:zero_grad()
        loss:backward()
        optimizer:step()
        seen[k] = counts().cuts - now
      end
      seen[7] = counts().waits - before.waits
      io.write(table.concat(seen, " "))
    ]])
  end)

  it("gives a script that asks for an event its work", function()
    assert.equal("1 2", output [[
      local runtime = require "ltrain.c".runtime
      local stream = runtime.current_stream "fake"
      local x = lt.ones(3):to "fake" * 2
      local at = runtime.record_event("fake", stream)
      assert(counts().cuts == 0)
      while not runtime.event_done("fake", stream, at) do end
      io.write(x:min():item() - 1, " ", counts().cuts)
    ]])
  end)
end)
