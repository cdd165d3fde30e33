-- spec/callbacks/model_checkpoint_spec.lua: which files ModelCheckpoint keeps, and their names.
-- tags: threads
local c = require "ltrain.c"
local file_name = require "ltrain.callbacks.file_name"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

local function files(folder)
  return c.io.list_folder(folder or root) or {}
end

-- A fit whose module logs scores[epoch] as "score"; returns trainer and callback.
local function fit(scores, options, trainer_options, batches)
  local net = tiny.Line()
  function net:on_train_epoch_end() self:log("score", scores[self.current_epoch + 1]) end
  if options.dirpath == nil then options.dirpath = root end
  local saving = lt.callbacks.ModelCheckpoint(options)
  local o = { enable_checkpointing = true, callbacks = { saving }, max_epochs = #scores,
    default_root_dir = root }
  for name, value in pairs(trainer_options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  trainer:fit(net, batches or tiny.same(2))
  return trainer, saving
end

describe("ModelCheckpoint", function()
  it("is refused before training beside another one with the same options", function()
    local batches = 0
    local net = tiny.Line()
    function net.on_train_batch_start() batches = batches + 1 end
    local function one() return lt.callbacks.ModelCheckpoint { dirpath = root } end
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = { one(), one() } }
    assert.matches("model_checkpoint_spec.lua:%d+: fit: two callbacks have the state_key "
      .. "'ModelCheckpoint%(.*': define state_key$", tiny.error_of(function()
        trainer:fit(net, tiny.same(1))
      end))
    assert.equal(0, batches)
  end)

  it("takes train_time_interval as a length of time", function()
    local function seconds(value)
      return lt.callbacks.ModelCheckpoint { train_time_interval = value }.train_time_interval
    end
    assert.same({ 300, 300, 300 }, { seconds(300), seconds { minutes = 5 }, seconds "00:00:05:00" })
    assert.matches("train_time_interval must be above 0: got 0", tiny.error_of(seconds, 0))
    assert.matches("train_time_interval has no unit 'minute'; did you mean 'minutes'",
      tiny.error_of(seconds, { minute = 5 }))
  end)

  it("keeps the newest without a monitor", function()
    local _, saving = fit({ 1, 1, 1 }, {})
    assert.same({ "epoch=2-step=6.ckpt" }, files())
    assert.equal(root .. "/epoch=2-step=6.ckpt", saving.best_model_path)
  end)

  it("keeps the best k, and knows the best and the worst of them", function()
    local _, saving = fit({ 3, 1, 2, 4 }, { monitor = "score", save_top_k = 2,
      filename = "{epoch}-{score:.1f}" })
    assert.same({ "epoch=1-score=1.0.ckpt", "epoch=2-score=2.0.ckpt" }, files())
    assert.equal(root .. "/epoch=1-score=1.0.ckpt", saving.best_model_path)
    assert.equal(1, saving.best_model_score)
    assert.equal(2, saving.kth_value)
  end)

  it("takes more as better in mode max, and nan as worst", function()
    fit({ 3, 0 / 0, 5, 4 }, { monitor = "score", mode = "max", filename = "{epoch}" })
    assert.same({ "epoch=2.ckpt" }, files())
  end)

  it("keeps all, or none but the last", function()
    fit({ 1, 1, 1 }, { save_top_k = -1, filename = "{epoch}" })
    assert.same({ "epoch=0.ckpt", "epoch=1.ckpt", "epoch=2.ckpt" }, files())
    os.execute("rm -rf '" .. root .. "'")
    fit({ 1, 1 }, { save_top_k = 0, save_last = true })
    assert.same({ "last.ckpt" }, files())
  end)

  it("saves every n steps, and every n epochs", function()
    fit({ 1, 1 }, { every_n_train_steps = 3, save_top_k = -1 }, nil, tiny.same(4))
    assert.same({ "epoch=0-step=3.ckpt", "epoch=1-step=6.ckpt" }, files())
    os.execute("rm -rf '" .. root .. "'")
    fit({ 1, 1, 1, 1 }, { every_n_epochs = 2, save_top_k = -1, filename = "{epoch}" })
    assert.same({ "epoch=1.ckpt", "epoch=3.ckpt" }, files())
  end)

  it("does not write over a file of an earlier run", function()
    fit({ 1 }, { filename = "same" })
    fit({ 1 }, { filename = "same" })
    assert.same({ "same-v1.ckpt", "same.ckpt" }, files())
  end)

  it("saves below the logger's folder when no other is given", function()
    local saving = lt.callbacks.ModelCheckpoint()
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = { saving },
      logger = true, default_root_dir = root, log_every_n_steps = 1 }
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.same({ "epoch=0-step=1.ckpt" }, files(root .. "/ltrain_logs/version_0/checkpoints"))
  end)

  it("is there by default, and not in a fast_dev_run", function()
    fit({ 1 }, {}, { fast_dev_run = true })
    assert.same({}, files())
    local trainer = tiny.trainer { enable_checkpointing = true, default_root_dir = root }
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.same({ "epoch=0-step=1.ckpt", "last.ckpt" }, files(root .. "/checkpoints"))
  end)

  it("saves on an error when asked", function()
    local net = tiny.Line()
    function net:training_step(x, batch_idx)
      assert(batch_idx < 1, "broken")
      return self:loss(x)
    end
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = {
      lt.callbacks.ModelCheckpoint { dirpath = root, save_on_exception = true } } }
    assert.matches("broken", tiny.error_of(trainer.fit, trainer, net, tiny.same(2)))
    assert.same({ "on_exception.ckpt" }, files())
  end)

  it("keeps what it knows in the file, and drops the worst after a resume", function()
    fit({ 3, 1 }, { monitor = "score", filename = "{epoch}", save_last = true })
    local _, saving = fit({ 3, 1, 0.5 }, { monitor = "score", filename = "{epoch}",
      save_last = true }, nil)
    assert.equal(0.5, saving.best_model_score)
    os.execute("rm -rf '" .. root .. "'")
    fit({ 3, 1 }, { monitor = "score", filename = "{epoch}", save_last = true })
    local net = tiny.Line()
    function net:on_train_epoch_end() self:log("score", 0.25) end
    local later = lt.callbacks.ModelCheckpoint { monitor = "score", filename = "{epoch}",
      save_last = true, dirpath = root }
    tiny.trainer({ enable_checkpointing = true, callbacks = { later }, max_epochs = 3 }):fit(net,
      tiny.same(2), { ckpt_path = root .. "/last.ckpt" })
    assert.same({ "epoch=2.ckpt", "last.ckpt" }, files())
    assert.equal(0.25, later.best_model_score)
  end)

  it("never removes a file of the run that it resumes in another folder", function()
    fit({ 1, 1 }, { dirpath = root .. "/a" })
    local old = root .. "/a/epoch=1-step=4.ckpt"
    for _, monitor in ipairs { false, "score" } do
      local net = tiny.Line()
      function net:on_train_epoch_end() self:log("score", 0.5) end
      local later = lt.callbacks.ModelCheckpoint { dirpath = root .. "/b",
        monitor = monitor or nil }
      tiny.trainer({ enable_checkpointing = true, callbacks = { later }, max_epochs = 3 }):fit(net,
        tiny.same(2), { ckpt_path = old })
      assert.same({ "epoch=1-step=4.ckpt" }, files(root .. "/a"))
      assert.equal(root .. "/b", later.best_model_path:match("^(.*)/"))
    end
  end)

  it("never removes the file that it was resumed from, by whatever path", function()
    local name = "epoch=1-step=4.ckpt"
    for _, weights_only in ipairs { false, true } do
      for _, monitor in ipairs { false, "score" } do
        fit({ 2, 1 }, { monitor = monitor or nil })
        local bytes = c.io.read_file(root .. "/" .. name)
        local net = tiny.Line()
        function net:on_train_epoch_end() self:log("score", 0.5 / (1 + self.current_epoch)) end
        local later = lt.callbacks.ModelCheckpoint { dirpath = root, monitor = monitor or nil,
          save_weights_only = weights_only }
        tiny.trainer({ enable_checkpointing = true, callbacks = { later }, max_epochs = 4 }):fit(
          net, tiny.same(2), { ckpt_path = root .. "/../" .. root:match("[^/]*$") .. "/" .. name })
        assert.same({ name, "epoch=3-step=8.ckpt" }, files())
        assert.equal(bytes, c.io.read_file(root .. "/" .. name))
        os.execute("rm -rf '" .. root .. "'")
      end
    end
  end)

  it("does not put weights alone where the state lies that it was resumed from", function()
    for _, counter in ipairs { true, false } do
      fit({ 2, 1 }, { save_last = true, save_top_k = 0 })
      local bytes = c.io.read_file(root .. "/last.ckpt")
      local later = lt.callbacks.ModelCheckpoint { dirpath = root, save_last = true,
        save_top_k = 0, save_weights_only = true, enable_version_counter = counter }
      tiny.trainer({ enable_checkpointing = true, callbacks = { later }, max_epochs = 4 }):fit(
        tiny.Line(), tiny.same(2), { ckpt_path = root .. "/last.ckpt" })
      assert.same({ "last-v1.ckpt", "last.ckpt" }, files())
      assert.equal(bytes, c.io.read_file(root .. "/last.ckpt"))
      os.execute("rm -rf '" .. root .. "'")
    end
  end)

  it("keeps the former files when the folder cannot be written", function()
    fit({ 3 }, { monitor = "score", filename = "kept" })
    local text = c.io.read_file(root .. "/kept.ckpt")
    local save = c.io.save_safetensors
    c.io.save_safetensors = function() return nil, "no space left on device" end
    local ok, message = pcall(fit, { 1 }, { monitor = "score", filename = "kept" })
    c.io.save_safetensors = save
    assert.is_false(ok)
    assert.matches("save_checkpoint: no space left on device", message)
    assert.same({ "kept.ckpt" }, files())
    assert.equal(text, c.io.read_file(root .. "/kept.ckpt"))
  end)

  it("refuses a folder that cannot be written before anything is trained", function()
    c.io.write_file(root, "in the way")
    local net, steps = tiny.Line(), 0
    function net:on_train_batch_start() steps = steps + 1 end
    local function run(options)
      options.dirpath = root .. "/checkpoints"
      tiny.trainer({ enable_checkpointing = true,
        callbacks = { lt.callbacks.ModelCheckpoint(options) } }):fit(net, tiny.same(1))
    end
    local message = tiny.error_of(run, {})
    assert.matches("ModelCheckpoint: write: cannot write in .*: Not a directory", message)
    assert.equal(0, steps)
    run { save_top_k = 0 }
    assert.equal(1, steps)
  end)

  it("refuses a metric that is never logged, and options that exclude each other", function()
    assert.matches("nothing called 'scor' was logged; there is: score; did you mean 'score'%?",
      tiny.error_of(fit, { 1 }, { monitor = "scor" }))
    assert.matches("exclude each other", tiny.error_of(lt.callbacks.ModelCheckpoint,
      { every_n_epochs = 1, every_n_train_steps = 1 }))
    assert.matches("save_top_k = 3 needs monitor", tiny.error_of(lt.callbacks.ModelCheckpoint,
      { save_top_k = 3 }))
  end)
end)

describe("names of checkpoints", function()
  it("put values into patterns", function()
    local values = { epoch = 3, step = 120, ["val/loss"] = 0.12345 }
    assert.equal("epoch=3-step=120", file_name.format("{epoch}-{step}", values, true))
    assert.equal("e03", file_name.format("e{epoch:02d}", values, false))
    assert.equal("val/loss=0.12", file_name.format("{val/loss:.2f}", values, true))
    assert.equal("absent=0", file_name.format("{absent}", values, true))
    assert.equal("x=inf", file_name.format("{x}", { x = math.huge }, true))
  end)
end)
