-- spec/callbacks/batch_size_finder_spec.lua: the sizes that are tried, the one that is found, what
-- stays.
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local BatchSizeFinder <const> = lt.callbacks.BatchSizeFinder

-- A module with a loader of `samples` samples, whose step needs a tensor of 1 MiB for each sample
-- of the batch; `tried` becomes the sizes of its steps.
local function make(samples, tried)
  local net = tiny.Line { lr = 0.1 }
  net.batch_size = 3
  local data = lt.data.TensorDataset(lt.ones(samples, 1))
  function net:train_dataloader()
    return lt.data.DataLoader(data, { batch_size = self.batch_size })
  end
  function net:training_step(batch)
    local n = batch[1].shape[1]
    if tried[#tried] ~= n then tried[#tried + 1] = n end
    return lt.ones(n, 1 << 18):mean() * self.w:sum()
  end
  return net
end

-- Fits with `mebibytes` of memory, or all; returns the finder, and what the fit raised.
local function fit(net, options, mebibytes, ...)
  local finder = BatchSizeFinder(options)
  local trainer = tiny.trainer { callbacks = { finder }, max_steps = 1 }
  c.runtime.collect_fully()
  c.runtime.empty_cache()
  if mebibytes then
    c.runtime.set_memory_limit(c.runtime.memory().live_bytes + (mebibytes << 20))
  end
  local ok, message = pcall(trainer.fit, trainer, net, ...)
  c.runtime.set_memory_limit(0)
  return finder, not ok and message or nil
end

describe("BatchSizeFinder", function()
  it("doubles the size until it does not fit, and takes the last that did", function()
    local tried = {}
    local net = make(64, tried)
    local finder, message = fit(net, { steps_per_trial = 1 }, 12)
    assert.is_nil(message)
    assert.same({ 8, 8 }, { finder.optimal_batch_size, net.batch_size })
    assert.same({ 2, 4, 8, 16, 8 }, tried) -- and the run
  end)

  it("bisects in mode binsearch, and takes a margin off", function()
    local tried = {}
    local net = make(64, tried)
    fit(net, { mode = "binsearch", steps_per_trial = 1, margin = 0 }, 15)
    assert.is_true(net.batch_size > 8 and net.batch_size < 15, net.batch_size)
    local found = net.batch_size
    fit(net, { mode = "binsearch", steps_per_trial = 1, margin = 0.5 }, 15)
    assert.equal(found // 2, net.batch_size)
  end)

  it("halves the first size where that does not fit", function()
    local net = make(64, {})
    fit(net, { init_val = 32, steps_per_trial = 1 }, 12)
    assert.equal(8, net.batch_size)
  end)

  it("ends at max_val, at max_trials, and where an epoch is one batch", function()
    local net = make(10, {})
    fit(net, {})
    assert.equal(16, net.batch_size)
    fit(net, { max_val = 5 })
    assert.equal(5, net.batch_size)
    fit(net, { max_trials = 2 })
    assert.equal(4, net.batch_size)
  end)

  it("leaves the weights and what is drawn as they were", function()
    local function run(callbacks)
      lt.seed(3)
      local net = make(4, {})
      net.batch_size = 4
      function net:training_step(batch)
        return (self.w * batch[1] + lt.randn(1)):square():mean()
      end
      tiny.trainer { callbacks = callbacks, max_epochs = 3 }:fit(net)
      return net.w:item()
    end
    assert.equal(run {}, run { BatchSizeFinder { init_val = 4 } })
  end)

  it("sets the field of hparams and of a data module too", function()
    local net, Data = tiny.Line(), lt.DataModule:extend "Data"
    local setups = 0
    function Data:init(o) self:save_hyperparameters(o) end
    function Data:setup() setups = setups + 1 end
    function Data:train_dataloader()
      return lt.data.DataLoader(lt.data.TensorDataset(lt.ones(6, 1)),
        { batch_size = self.hparams.width })
    end
    function net:training_step(batch) return (self.w * batch[1]):mean() end
    local data = Data { width = 1 }
    local _, message = fit(net, { batch_arg_name = "width" }, nil, data)
    assert.is_nil(message)
    assert.same({ 8, 1 }, { data.hparams.width, setups })
  end)

  it("raises other errors, and sets the size back", function()
    local net = make(8, {})
    function net.training_step() error "mine" end
    local _, message = fit(net, {})
    assert.matches("mine", message)
    assert.equal(3, net.batch_size)
    _, message = fit(make(8, {}), {}, 0)
    assert.matches("BatchSizeFinder: no size fits, not even 1: .*out of memory on", message)
  end)

  it("needs a field, and a hook that makes the loader with it", function()
    local _, message = fit(make(8, {}), { batch_arg_name = "size" })
    assert.matches("the module, its hparams and the data module have no field 'size'", message)
    _, message = fit(make(8, {}), {}, nil, tiny.same(2))
    assert.matches("BatchSizeFinder: the loaders are made already: define train_dataloader",
      message)
  end)
end)
