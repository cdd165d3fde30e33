-- spec/trainer/eval_spec.lua: validation, test and predict: when they run, and what they leave.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local KINDS <const> = { "val", "test", "predict" }
local WORDS <const> = { val = "validate", test = "test", predict = "predict" }

-- A Line with steps for all loops; `calls` gets the names of hooks as they are called.
local function recording(calls)
  local net = tiny.Line()
  for _, stage in ipairs { "validation", "test", "predict" } do
    for _, name in ipairs { "start", "epoch_start", "batch_start", "batch_end", "epoch_end",
      "end", "model_eval", "model_train", "model_zero_grad" } do
      if stage ~= "predict" or not name:find "^model" then
        local hook = ("on_%s_%s"):format(stage, name)
        net[hook] = function() calls[#calls + 1] = hook end
      end
    end
    net[stage .. "_step"] = function() calls[#calls + 1] = stage .. "_step" end
  end
  for _, kind in ipairs(KINDS) do
    net[kind .. "_dataloader"] = function()
      calls[#calls + 1] = kind .. "_dataloader"
      return tiny.same(2)
    end
  end
  return net
end

local function sanity_watcher(calls)
  local callback = lt.Callback()
  function callback.on_sanity_check_start() calls[#calls + 1] = "on_sanity_check_start" end
  function callback.on_sanity_check_end() calls[#calls + 1] = "on_sanity_check_end" end
  return callback
end

describe("a limit of 0", function()
  it("calls no hook and no loader of validation within fit", function()
    for _, limit in ipairs { 0, 0.0 } do
      local calls = {}
      local trainer = tiny.trainer { limit_val_batches = limit, callbacks = {
        sanity_watcher(calls) } }
      trainer:fit(recording(calls), tiny.same(2))
      assert.same({}, calls)
      assert.equal(2, trainer.global_step)
    end
  end)

  it("calls none of validate, test and predict", function()
    for _, kind in ipairs(KINDS) do
      local calls = {}
      local trainer = tiny.trainer { ["limit_" .. kind .. "_batches"] = 0 }
      assert.same({}, trainer[WORDS[kind]](trainer, recording(calls), nil, { verbose = false }))
      assert.same({}, calls)
    end
  end)
end)

describe("fit without validation data", function()
  it("calls no hook of the check before training", function()
    local calls, net = {}, tiny.Line()
    function net.validation_step() end
    tiny.trainer({ callbacks = { sanity_watcher(calls) } }):fit(net, tiny.same(1))
    assert.same({}, calls)
  end)
end)

describe("several loaders", function()
  local function both(a, b) return { a = tiny.batches { a }, b = tiny.batches { b } } end

  it("keep their suffix for what is logged in their batches alone", function()
    local net = tiny.Line()
    function net:validation_step(x) self:log("mean", x:mean()) end
    function net:on_validation_start() self:log("first", 1) end
    function net:on_validation_epoch_start() self:log("second", 2) end
    function net:on_validation_epoch_end() self:log("third", 3) end
    local trainer = tiny.trainer()
    trainer:validate(net, { val = both(4.0, 5.0) }, { verbose = false })
    assert.same({ first = 1.0, second = 2.0, third = 3.0, ["mean/dataloader_idx_1"] = 4.0,
      ["mean/dataloader_idx_2"] = 5.0 }, trainer.callback_metrics)
  end)

  it("let a callback monitor a metric of on_validation_epoch_end", function()
    local net, epochs = tiny.Line(), 0
    function net.validation_step() end
    function net:on_validation_epoch_end() self:log("score", -self.current_epoch) end
    function net.on_train_epoch_start() epochs = epochs + 1 end
    tiny.trainer({ max_epochs = 5, callbacks = { lt.callbacks.EarlyStopping { monitor = "score",
      mode = "max", patience = 1 } } }):fit(net, { train = tiny.same(1), val = both(1.0, 2.0) })
    assert.equal(2, epochs)
  end)

  it("may have names, and come in the order of these", function()
    for _, kind in ipairs(KINDS) do
      local net, seen = tiny.Line(), {}
      local step = { val = "validation_step", test = "test_step", predict = "predict_step" }
      net[step[kind]] = function(self, x, _, index)
        seen[#seen + 1] = ("%d %g"):format(index, x:item())
        if kind ~= "predict" then self:log("mean", x:mean()) end
        return x:item()
      end
      local trainer = tiny.trainer()
      local found = trainer[WORDS[kind]](trainer, net, { [kind] = both(4.0, 5.0) },
        { verbose = false })
      assert.same({ "1 4", "2 5" }, seen)
      assert.same(kind == "predict" and { { 4.0 }, { 5.0 } }
        or { { ["mean/dataloader_idx_1"] = 4.0 }, { ["mean/dataloader_idx_2"] = 5.0 } }, found)
    end
  end)

  it("may have names in fit, and as DataLoaders that train too", function()
    local net, seen = tiny.Line(), {}
    local function loader(n)
      return lt.data.DataLoader(lt.data.TensorDataset(lt.ones(n, 1)), { batch_size = 2 })
    end
    local train = loader(4)
    function net:training_step(batch) return self:loss(batch[1]) end
    function net:validation_step(_, _, index) seen[#seen + 1] = index end
    tiny.trainer({ num_sanity_val_steps = 0 }):fit(net, { train = train,
      val = { first = train, second = loader(2) } })
    assert.same({ 1, 1, 2 }, seen)
  end)

  it("may have names as the third argument of fit", function()
    local net, seen = tiny.Line(), {}
    function net.validation_step(_, x, _, index)
      seen[#seen + 1] = ("%d %g"):format(index, x:item())
    end
    tiny.trainer({ num_sanity_val_steps = 0 }):fit(net, tiny.same(1), both(4.0, 5.0))
    assert.same({ "1 4", "2 5" }, seen)
    assert.matches("fit: unknown option 'ckpt_pth'; did you mean 'ckpt_path'%?$", tiny.error_of(
      tiny.trainer().fit, tiny.trainer(), net, tiny.same(1), { ckpt_pth = "last" }))
  end)

  it("cannot log one name without the index of the loader", function()
    local net = tiny.Line()
    function net:validation_step(x) self:log("mean", x:mean(), { add_dataloader_idx = false }) end
    assert.matches("eval_spec.lua:%d+: log: 'mean' is logged for loaders 1 and 2 under one name: "
      .. "with add_dataloader_idx = false each needs a different name$", tiny.error_of(
      tiny.trainer().validate, tiny.trainer(), net, { val = both(4.0, 5.0) }))
    function net:validation_step(x, _, index)
      self:log("mean" .. index, x:mean(), { add_dataloader_idx = false })
    end
    local trainer = tiny.trainer()
    trainer:validate(net, { val = both(4.0, 5.0) }, { verbose = false })
    assert.same({ mean1 = 4.0, mean2 = 5.0 }, trainer.callback_metrics)
  end)

  it("are refused where they are none, or have a gap", function()
    local function refused(val)
      local net = tiny.Line()
      function net.validation_step() end
      return tiny.error_of(tiny.trainer().validate, tiny.trainer(), net, { val = val })
    end
    local fine = tiny.same(1)
    assert.matches("lua:%d+: val_dataloader.b: a loader must be a DataLoader, .* got 2$",
      refused { a = fine, b = 2 })
    assert.matches("val_dataloader: no loader is at position 2, but one is at 3$",
      refused { [1] = function() end, [3] = function() end })
    assert.matches("val_dataloader: loaders are given by position and by name$",
      refused { a = fine, fine })
    assert.matches("validate: unknown option 'a': give loaders by name as {val = {...}}$",
      tiny.error_of(tiny.trainer().validate, tiny.trainer(), tiny.Line(),
        { a = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(2))) }))
    assert.matches("CombinedLoader: a%[1%] must be a loader, an IterableDataset, or a function",
      tiny.error_of(tiny.trainer().fit, tiny.trainer(), tiny.Line(), { train = { a = fine } }))
  end)
end)

describe("metrics of an evaluation", function()
  it("are in callback_metrics and logged_metrics from its end on", function()
    for _, stage in ipairs { "validation", "test" } do
      local net, seen = tiny.Line(), {}
      net[stage .. "_step"] = function(self, x)
        self:log("mean", x:mean())
        self:log("hidden", 1, { logger = false })
      end
      net["on_" .. stage .. "_epoch_end"] = function(self)
        seen.epoch_end = self.trainer.callback_metrics.mean
        self:log("late", 3)
      end
      net["on_" .. stage .. "_end"] = function(self)
        seen.callback, seen.logged = {}, {}
        for key, value in pairs(self.trainer.callback_metrics) do seen.callback[key] = value end
        for key, value in pairs(self.trainer.logged_metrics) do seen.logged[key] = value end
      end
      local trainer = tiny.trainer { num_sanity_val_steps = 0 }
      if stage == "test" then
        trainer:test(net, tiny.batches({ 1.0 }, { 3.0 }), { verbose = false })
      else
        trainer:fit(net, tiny.same(1), tiny.batches({ 1.0 }, { 3.0 }))
      end
      assert.equal(2.0, seen.epoch_end)
      assert.same({ mean = 2.0, late = 3.0, hidden = 1.0 }, seen.callback)
      assert.same({ mean = 2.0, late = 3.0 }, seen.logged)
      assert.equal(2.0, trainer.callback_metrics.mean)
      assert.equal(3.0, trainer.logged_metrics.late)
    end
  end)
end)

describe("validation data", function()
  -- What fit asks for, and its validation steps.
  local function asked_by(options)
    local asked, net = {}, tiny.Line()
    function net:train_dataloader()
      asked[#asked + 1] = "train " .. self.current_epoch
      return tiny.same(2)
    end
    function net:val_dataloader()
      asked[#asked + 1] = "val " .. self.current_epoch
      return tiny.same(1)
    end
    function net:validation_step() asked[#asked + 1] = "step " .. self.current_epoch end
    options.num_sanity_val_steps, options.max_epochs = options.num_sanity_val_steps or 0, 6
    tiny.trainer(options):fit(net)
    return table.concat(asked, ", ")
  end

  it("is asked for where validation comes, and reloaded there", function()
    assert.equal("train 0, train 1, train 2, val 2, step 2, "
      .. "train 3, train 4, train 5, val 5, step 5",
      asked_by { reload_dataloaders_every_n_epochs = 1, check_val_every_n_epoch = 3 })
    assert.equal("train 0, train 2, val 2, step 2, train 4, val 5, step 5",
      asked_by { reload_dataloaders_every_n_epochs = 2, check_val_every_n_epoch = 3 })
  end)

  it("is asked for once without reloading, by the check before training if there is one", function()
    assert.equal("train 0, val 2, step 2, step 5", asked_by { check_val_every_n_epoch = 3 })
    assert.equal("val 0, step 0, train 0, step 2, step 5",
      asked_by { check_val_every_n_epoch = 3, num_sanity_val_steps = 1 })
  end)

  it("that a hook does not give is not a validation", function()
    local net = tiny.Line()
    function net.val_dataloader() end
    function net.validation_step() error "there is nothing to validate" end
    tiny.trainer({ check_val_every_n_epoch = 2, max_epochs = 2 }):fit(net, tiny.same(1))
  end)

  it("that is still to come does not make a checkpoint miss its metric", function()
    local folder, net = tiny.folder(), tiny.Line()
    function net:validation_step(x) self:log("val_loss", self:loss(x)) end
    local best = lt.callbacks.ModelCheckpoint { dirpath = folder, monitor = "val_loss" }
    tiny.trainer({ check_val_every_n_epoch = 2, max_epochs = 2, num_sanity_val_steps = 0,
      enable_checkpointing = true, callbacks = { best } }):fit(net, tiny.same(1), tiny.same(1))
    assert.matches("epoch=1%-step=2.ckpt$", best.best_model_path)
    os.execute("rm -r " .. folder)
  end)
end)

describe("what a run works with", function()
  it("is in fields of the Trainer", function()
    local net, train, val = tiny.Line(), tiny.same(4), { a = tiny.same(3), b = tiny.same(1) }
    function net.validation_step() end
    net.test_step = net.validation_step
    local data, seen = {
      train_dataloader = function() return train end,
      val_dataloader = function() return val end,
    }, {}
    function net:on_train_start()
      for _, name in ipairs { "datamodule", "model", "lightning_module", "train_dataloader",
        "val_dataloaders", "num_sanity_val_batches", "num_val_batches", "num_training_batches" } do
        seen[name] = self.trainer[name]
      end
    end
    local trainer = tiny.trainer { limit_train_batches = 2 }
    trainer:fit(net, data)
    assert.equal(data, seen.datamodule)
    assert.equal(net, seen.model)
    assert.equal(net, seen.lightning_module)
    assert.equal(train, seen.train_dataloader)
    assert.same(val, seen.val_dataloaders)
    assert.same({ { 2, 1 }, { 3, 1 }, 2 },
      { seen.num_sanity_val_batches, seen.num_val_batches, seen.num_training_batches })
    local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(2, 1)))
    trainer:test(net, loader, { verbose = false })
    assert.equal(loader, trainer.test_dataloaders)
    assert.is_nil(trainer.datamodule)
  end)

  it("counts all batches as those of the check, with num_sanity_val_steps = -1", function()
    local net, trainer = tiny.Line(), tiny.trainer { num_sanity_val_steps = -1 }
    function net.validation_step() end
    trainer:fit(net, tiny.same(1), tiny.same(3))
    assert.same({ 3 }, trainer.num_sanity_val_batches)
  end)
end)
