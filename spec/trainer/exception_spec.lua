-- spec/trainer/exception_spec.lua: the file of a fit that ended in an error resumes with the batch
-- that failed, and ends with the weights of a fit that did not fail.
local c = require "ltrain.c"
local lt = require "ltrain"
local nn = lt.nn
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

local EPOCHS <const>, BATCHES <const> = 2, 6

-- Dropout, statistics of batches, a metric, momentum and a schedule: all that a batch changes.
local Net = lt.Module:extend("Net")

function Net:init()
  self.first, self.second = nn.Linear(2, 4), nn.Linear(4, 1)
  self.norm, self.dropout = nn.BatchNorm2d(4), nn.Dropout(0.3)
  self.mean = lt.metrics.Mean()
  self.begun = {}
end

-- Raises at the place that the run is to fail at.
local function fail_at(net, place)
  local fails = net.fails
  if fails and fails.place == place and net.current_epoch == fails.epoch
    and (fails.batch == nil or net.running_batch == fails.batch) then
    error("broken in " .. place, 0)
  end
end

function Net:training_step(batch, batch_idx)
  self.running_batch = batch_idx
  table.insert(self.begun, { self.current_epoch, batch_idx })
  local hidden = self.norm(self.first(batch[1]):reshape(-1, 4, 1, 1)):reshape(-1, 4)
  local loss = (self.second(self.dropout(hidden)) - 1):square():mean()
  self.mean:update(loss)
  self:log("mean", self.mean, { on_step = false, on_epoch = true })
  self:log("loss", loss, { on_step = false, on_epoch = true })
  fail_at(self, "training_step")
  return loss
end

-- One parameter's gradient is there, others' are not.
function Net:backward(loss)
  local ok, message = pcall(fail_at, self, "backward")
  if not ok then
    self.second.weight.grad = lt.ones(1, 4)
    error(message, 0)
  end
  loss:backward()
end

for _, hook in ipairs { "on_after_backward", "on_before_optimizer_step", "on_train_batch_end",
  "on_train_epoch_start", "on_train_epoch_end", "on_before_zero_grad", "on_validation_end",
  "on_after_optimizer_step" } do
  Net[hook] = function(self) fail_at(self, hook) end
end

function Net:optimizer_step(_, batch_idx, optimizer, closure)
  self.running_batch = batch_idx
  fail_at(self, "optimizer_step")
  optimizer:step(closure)
  fail_at(self, "after_step")
end

function Net:lr_scheduler_step(scheduler)
  fail_at(self, "lr_scheduler_step")
  scheduler:step()
end

function Net:validation_step() fail_at(self, "validation_step") end

function Net:configure_optimizers()
  local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1, momentum = 0.9 })
  return { optimizer }, { { interval = "step", scheduler = lt.optim.StepLR(optimizer, 2) } }
end

lt.seed(1)
local data = lt.data.TensorDataset(lt.randn(BATCHES * 3, 2))

-- A data set that fails when the sample is read that a batch begins with.
local Broken = lt.data.Dataset:extend("Broken")
function Broken:init(net) self.net, self.reads = net, 0 end
function Broken.__len() return #data end
function Broken:get(i)
  self.net.running_batch = self.reads // 3 % BATCHES
  self.reads = self.reads + 1
  fail_at(self.net, "loader")
  return data:get(i)
end

local function bits(net)
  local list = {}
  for name, tensor in pairs(net:state_dict()) do list[name] = c.io.crc32(tensor) end
  return list
end

-- A fit of the net; the values of each epoch, and the module.
local function run(accumulate, seed, ckpt_path, fails)
  lt.seed(seed)
  local net, values, rows = Net(), {}, lt.Callback()
  net.fails = fails
  function rows.on_train_epoch_end(_, trainer)
    values[trainer.current_epoch] = ("%a"):format(trainer.callback_metrics.mean)
      .. ("%a"):format(trainer.callback_metrics.loss)
  end
  rows.monitor = "mean" -- after the module's
  local trainer = tiny.trainer { max_epochs = EPOCHS, accumulate_grad_batches = accumulate,
    enable_checkpointing = true, callbacks = { rows,
      lt.callbacks.ModelCheckpoint { dirpath = root, save_on_exception = true,
        save_top_k = 0 } } }
  local set = fails and fails.place == "loader" and Broken(net) or data
  local options = { batch_size = 3, shuffle = true, prefetch = fails and 0 or nil }
  local ok, message = pcall(trainer.fit, trainer, net, lt.data.DataLoader(set, options),
    lt.data.DataLoader(data, { batch_size = 9 }), { ckpt_path = ckpt_path })
  return net, values, ok, message
end

local whole = {}
local function check(accumulate, fails)
  whole[accumulate] = whole[accumulate] or table.pack(run(accumulate, 5))
  local net, values = table.unpack(whole[accumulate])
  local what = ("accumulate %d, epoch %d, batch %s, %s"):format(accumulate, fails.epoch,
    tostring(fails.batch), fails.place)
  local _, _, ok, message = run(accumulate, 5, nil, fails)
  assert.is_false(ok, what)
  assert.matches("broken in " .. fails.place, tostring(message))
  local again, later, fine, why = run(accumulate, 6, root .. "/on_exception.ckpt")
  assert.is_true(fine, tostring(why))
  assert.same(bits(net), bits(again), what)
  for epoch, text in pairs(later) do assert.equal(values[epoch], text, what) end
  return again.begun[1]
end

describe("the file of a fit that failed", function()
  for accumulate = 1, 3 do
    it("resumes with that batch, whichever it is, accumulating " .. accumulate, function()
      for epoch = 0, EPOCHS - 1 do
        for batch = 0, BATCHES - 1 do
          assert.same({ epoch, batch }, check(accumulate, { place = "training_step",
            epoch = epoch, batch = batch }))
        end
      end
    end)
  end

  for _, place in ipairs { "backward", "on_after_backward", "loader" } do
    it("resumes with that batch after a failure in " .. place, function()
      for accumulate = 1, 2 do
        assert.same({ 1, 3 }, check(accumulate, { place = place, epoch = 1, batch = 3 }))
      end
    end)
  end

  for _, place in ipairs { "on_before_zero_grad", "on_before_optimizer_step",
    "optimizer_step" } do
    it("resumes with that batch after a failure in " .. place, function()
      assert.same({ 1, 3 }, check(1, { place = place, epoch = 1, batch = 3 }))
    end)
  end

  for _, place in ipairs { "after_step", "on_after_optimizer_step", "lr_scheduler_step",
    "on_train_batch_end" } do
    it("resumes after the step when " .. place .. " fails", function()
      for accumulate = 1, 2 do
        assert.same({ 1, 4 }, check(accumulate, { place = place, epoch = 1, batch = 3 }))
      end
    end)
  end

  for _, place in ipairs { "on_train_epoch_start", "validation_step", "on_validation_end",
    "on_train_epoch_end" } do
    it("resumes with what failed after a failure in " .. place, function()
      for accumulate = 1, 2 do check(accumulate, { place = place, epoch = 1 }) end
    end)
  end
end)

describe("save_on_exception", function()
  local function failing(o)
    local net = tiny.Line()
    function net.training_step(self, x, batch_idx)
      if o.steps_first then self:optimizers():step() end
      if batch_idx == 1 then error("broken", 0) end
      return not o.steps_first and self:loss(x) or nil
    end
    net.automatic_optimization = not o.steps_first
    return net
  end

  it("does not write over the file that a resumed run could not take", function()
    local function fit(make, ckpt_path)
      local net = failing {}
      function net.configure_optimizers(self) return make(self:parameters(), { lr = 0.1 }) end
      local trainer = tiny.trainer { enable_checkpointing = true, callbacks = {
        lt.callbacks.ModelCheckpoint { dirpath = root, save_on_exception = true } } }
      return tiny.error_of(trainer.fit, trainer, net, tiny.same(2), { ckpt_path = ckpt_path })
    end
    local path = root .. "/on_exception.ckpt"
    fit(lt.optim.SGD)
    local bytes = c.io.read_file(path)
    assert.matches("has the state of the optimizer SGD", fit(lt.optim.Adam, path))
    assert.equal(bytes, c.io.read_file(path))
  end)

  it("says where an optimizer of manual optimization had stepped in that batch", function()
    local said = {}
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = {
      lt.callbacks.ModelCheckpoint { dirpath = root, save_on_exception = true } } }
    function trainer.say(_, text) said[#said + 1] = text end
    tiny.error_of(trainer.fit, trainer, failing { steps_first = true }, tiny.same(2))
    assert.matches("an optimizer has changed weights in the batch that failed", said[1])
    assert.matches("saved .*/on_exception.ckpt", said[2])
  end)

  it("is what a callback that saves on exceptions says of itself", function()
    for _, keeps in ipairs { true, false } do
      local callback, said = lt.Callback(), nil
      callback.save_on_exception = keeps
      function callback.on_exception(_, trainer) trainer:save_checkpoint(root .. "/own.ckpt") end
      local trainer = tiny.trainer { callbacks = { callback } }
      function trainer.warn(_, text) said = text end
      tiny.error_of(trainer.fit, trainer, failing {}, tiny.same(3))
      if keeps then
        assert.equal("file", c.io.kind(root .. "/own.ckpt"))
        os.remove(root .. "/own.ckpt")
      else
        assert.matches("save_checkpoint: the fit ended in the middle of a batch", said)
        assert.is_nil(c.io.kind(root .. "/own.ckpt"))
      end
    end
  end)
end)

describe("save_checkpoint in the middle of a batch", function()
  for _, hook in ipairs { "on_before_zero_grad", "on_before_backward", "on_after_backward",
    "on_before_optimizer_step", "on_after_optimizer_step", "configure_gradient_clipping" } do
    it("is refused in " .. hook .. ", with the place to do it", function()
      local net = tiny.Line()
      net[hook] = function(self) self.trainer:save_checkpoint(root .. "/mid.ckpt") end
      local trainer = tiny.trainer()
      assert.matches(("save_checkpoint: in the middle of a batch (%s) a file would not resume "
        .. "exactly: trainer:request_checkpoint(path) saves at the end of this batch"):format(hook),
        tiny.error_of(trainer.fit, trainer, net, tiny.same(1)), 1, true)
      assert.is_nil(c.io.kind(root .. "/mid.ckpt"))
    end)
  end

  it("is refused in training_step once an optimizer has stepped", function()
    local net = tiny.Line()
    net.automatic_optimization = false
    function net:training_step(x)
      self:manual_backward(self:loss(x))
      self:optimizers():step()
      self.trainer:save_checkpoint(root .. "/mid.ckpt")
    end
    local trainer = tiny.trainer()
    assert.matches("in the middle of a batch (training_step)", tiny.error_of(trainer.fit, trainer,
      net, tiny.same(1)), 1, true)
  end)

  it("resumes with the batch of a training_step that begins with it, dropout and all", function()
    local path = root .. "/step.ckpt"
    local function fit(ckpt_path)
      lt.seed(5)
      local net = Net()
      local step = net.training_step
      function net:training_step(batch, batch_idx)
        if not ckpt_path and self.current_epoch == 1 and batch_idx == 2 then
          self.trainer:save_checkpoint(path)
        end
        return step(self, batch, batch_idx)
      end
      tiny.trainer({ max_epochs = 2 }):fit(net, lt.data.DataLoader(data, { batch_size = 3,
        shuffle = true }), { ckpt_path = ckpt_path })
      return net
    end
    local whole_run = bits(fit())
    local again = fit(path)
    assert.same(whole_run, bits(again))
    assert.same({ 1, 2 }, again.begun[1])
  end)

  it("saves weights alone, and all where the hook asks for it", function()
    local net = tiny.Line()
    function net:on_after_backward()
      self.trainer:save_checkpoint(root .. "/weights.ckpt", { weights_only = true })
      self.trainer:request_checkpoint(root .. "/whole.ckpt")
    end
    tiny.trainer():fit(net, tiny.same(1))
    assert.same({ "weights.ckpt", "whole.ckpt" }, c.io.list_folder(root))
  end)
end)
