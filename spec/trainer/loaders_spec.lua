-- spec/trainer/loaders_spec.lua: DataLoaders, data modules and iterables as sources of a loop.
local console = require "ltrain.core.console"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- 10 samples 0..9 of one number.
local function numbers()
  return lt.data.TensorDataset(lt.arange(10):to("f32"):reshape(10, 1))
end

-- A module that notes what it is given, and draws random numbers as dropout would.
local Watcher = lt.Module:extend("Watcher")

function Watcher:init()
  self.w = lt.parameter(lt.tensor { 0.1 })
  self.dropout = lt.nn.Dropout(0.5)
  self._seen = {}
end

local function column(batch)
  local x = type(batch) == "table" and batch[1] or batch
  return x:flatten():tolist()
end

function Watcher:training_step(batch)
  local list = column(batch)
  self._seen[#self._seen + 1] = table.concat(list, " ")
  local x = type(batch) == "table" and batch[1] or batch
  local loss = ((self.dropout(x) * self.w - 1) ^ 2):mean()
  self:log("loss", loss, { on_epoch = true })
  return loss
end

function Watcher:configure_optimizers()
  return lt.optim.Adam(self:parameters(), { lr = 0.01 })
end

local path
before_each(function() path = tiny.folder() .. ".ckpt" end)
after_each(function() os.remove(path) end)

-- Trains two epochs, saving after `step` steps; returns module and trainer.
local function run(make_loader, step, ckpt_path, seed)
  lt.seed(seed or 3)
  local callback, net = lt.Callback(), Watcher()
  function callback.on_train_batch_end(_, trainer)
    if trainer.global_step == step then trainer:request_checkpoint(path) end
  end
  local trainer = tiny.trainer { max_epochs = 2, callbacks = { callback } }
  trainer:fit(net, make_loader(), { ckpt_path = ckpt_path })
  return net, trainer
end

local function same_after_resume(make_loader, step)
  local whole, trainer = run(make_loader, step)
  local again, other = run(make_loader, nil, path, 99)
  local tail = table.move(whole._seen, step + 1, #whole._seen, 1, {})
  assert.same(tail, again._seen)
  assert.equal(("%a"):format(whole.w:item()), ("%a"):format(again.w:item()))
  assert.equal(trainer.callback_metrics.loss_epoch, other.callback_metrics.loss_epoch)
end

describe("a DataLoader", function()
  it("that shuffles resumes in the same order with the same dropout", function()
    local function make()
      return lt.data.DataLoader(numbers(), { batch_size = 3, shuffle = true })
    end
    same_after_resume(make, 2)
    same_after_resume(make, 4)
    same_after_resume(make, 6)
  end)

  it("over an iterable is replayed", function()
    local function make()
      return lt.data.DataLoader(function()
        local i = 0
        return function()
          i = i + 1
          if i <= 10 then return lt.tensor { i + 0.0 } end
        end
      end, { batch_size = 3 })
    end
    same_after_resume(make, 3)
    same_after_resume(make, 4)
  end)

  it("gives another order in each epoch, and all samples in each", function()
    local net = run(function()
      return lt.data.DataLoader(numbers(), { batch_size = 5, shuffle = true })
    end)
    assert.equal(4, #net._seen)
    local first, second = {}, {}
    for i, into in ipairs { first, first, second, second } do
      for number in net._seen[i]:gmatch "%S+" do into[#into + 1] = tonumber(number) end
    end
    assert.is_false(table.concat(first, " ") == table.concat(second, " "))
    table.sort(first)
    table.sort(second)
    assert.same(first, second)
    assert.equal(10, #first)
  end)

  it("may serve training and validation: each has its own place in it", function()
    local function fit(net, options)
      local loader = lt.data.DataLoader(numbers(), { batch_size = 1 })
      function net:validation_step() end
      tiny.trainer { max_epochs = 1, val_check_interval = 2 }:fit(net, loader, loader, options)
      return net._seen
    end
    local net = Watcher()
    function net:on_train_batch_end(_, _, index)
      if index == 5 then self.trainer:request_checkpoint(path) end
    end
    assert.equal(10, #fit(net))
    assert.same({ "6.0", "7.0", "8.0", "9.0" }, fit(Watcher(), { ckpt_path = path }))
  end)

  it("no longer shuffles for overfit_batches", function()
    local net = Watcher()
    tiny.trainer({ overfit_batches = 1, max_epochs = 2 }):fit(net,
      lt.data.DataLoader(numbers(), { batch_size = 2, shuffle = true }))
    assert.same({ "0.0 1.0", "0.0 1.0" }, net._seen)
  end)
end)

describe("a function that gives the batches itself", function()
  local say, lines = console.say, nil
  before_each(function()
    lines = {}
    console.say = function(text) lines[#lines + 1] = text:match("^warning: .*") end
  end)
  after_each(function() console.say = say end)

  local function fit(fn)
    local trainer = tiny.trainer { max_epochs = 3 }
    trainer:fit(tiny.Line(), fn)
    return trainer
  end

  local text = "a function that returns batches can be read once, and is exhausted"

  it("has one pass; epochs after it are reported, once", function()
    local i = 0
    local trainer = fit(function()
      i = i + 1
      return i <= 4 and lt.ones(2) or nil
    end)
    assert.equal(4, trainer.global_step)
    assert.equal(1, #lines)
    assert.matches(text, lines[1])
  end)

  it("may be a coroutine, which is not resumed when it is dead", function()
    local trainer = fit(coroutine.wrap(function()
      for _ = 1, 4 do coroutine.yield(lt.ones(2)) end
    end))
    assert.equal(4, trainer.global_step)
    assert.matches(text, lines[1])
  end)
end)

describe("a DataModule", function()
  it("prepares, sets up, gives loaders, and is torn down", function()
    local calls = {}
    local Data = lt.DataModule:extend("Data")
    function Data:prepare_data() calls[#calls + 1] = "prepare_data" end
    function Data:setup(stage) calls[#calls + 1] = "setup " .. stage end
    function Data:train_dataloader()
      calls[#calls + 1] = "train_dataloader"
      return lt.data.DataLoader(numbers(), { batch_size = 10 })
    end
    function Data:on_after_batch_transfer(batch)
      return { batch[1] * 2 }
    end
    function Data:teardown(stage) calls[#calls + 1] = "teardown " .. stage end
    local net = Watcher()
    tiny.trainer():fit(net, Data())
    assert.same({ "prepare_data", "setup fit", "train_dataloader", "teardown fit" }, calls)
    assert.matches("^0.0 2.0 4.0", net._seen[1])
  end)

  it("is asked again every n epochs", function()
    local asked, net = 0, Watcher()
    function net.train_dataloader()
      asked = asked + 1
      return tiny.same(1)
    end
    tiny.trainer({ reload_dataloaders_every_n_epochs = 2, max_epochs = 5 }):fit(net)
    assert.equal(3, asked)
  end)
end)

describe("Trainer:predict and validate", function()
  it("predict keeps many results in order, and leaves out batches without one", function()
    local net, wanted = tiny.Line(), {}
    function net.predict_step(_, _, index)
      if index % 7 ~= 0 and index // 100 ~= 3 then return index end
    end
    for index = 0, 999 do wanted[#wanted + 1] = net.predict_step(nil, nil, index) end
    local x = lt.ones(1)
    local loader = { length = function() return 1000 end }
    function loader.batches()
      local count = 0
      return function()
        count = count + 1
        return count <= 1000 and x or nil
      end
    end
    assert.same(wanted, tiny.trainer():predict(net, loader))
  end)

  it("predict returns what predict_step gives, one a batch", function()
    local net = tiny.Line()
    function net:predict_step(batch) return self(batch[1]) end
    local outputs = tiny.trainer():predict(net, lt.data.DataLoader(numbers(), { batch_size = 4 }))
    assert.same({ { 4, 1 }, { 4, 1 }, { 2, 1 } },
      { outputs[1].shape, outputs[2].shape, outputs[3].shape })
    assert.is_false(outputs[1].requires_grad)
  end)

  it("validate returns one table a loader, with the mean over samples", function()
    local net = tiny.Line()
    function net:validation_step(batch) self:log("mean", batch[1]:mean()) end
    function net:on_validation_epoch_end() self:log("shared", 1.0) end
    local values = tiny.trainer():validate(net,
      lt.data.DataLoader(numbers(), { batch_size = 4 }), { verbose = false })
    assert.same({ { mean = 4.5, shared = 1.0 } }, values)
  end)
end)
