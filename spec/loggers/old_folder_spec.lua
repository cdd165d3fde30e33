-- spec/loggers/old_folder_spec.lua: runs from before the default folder of logs was `ltrain_logs`.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

describe("a run under lightning_logs", function()
  local root
  before_each(function() root = child.folder() end)
  after_each(function() child.remove(root) end)

  local function new_trainer(epochs, options)
    options = options or {}
    return tiny.trainer { max_epochs = epochs, default_root_dir = root, enable_checkpointing = true,
      log_every_n_steps = 1, logger = lt.loggers.CSVLogger(root, options), callbacks = {
        lt.callbacks.ModelCheckpoint { save_last = true },
      } }
  end

  local function fit(trainer, given)
    local net = tiny.Line()
    function net:on_train_epoch_end() self:log("x", 1) end
    trainer:fit(net, tiny.same(1), given)
    return trainer
  end

  -- A run of the version that still had this name.
  local function old_run()
    fit(new_trainer(1, { version = 0 }))
    assert(os.rename(root .. "/ltrain_logs", root .. "/lightning_logs"))
    local path = root .. "/lightning_logs/version_0/checkpoints/last.ckpt"
    -- Its paths are in the file.
    local checkpoint_io = lt.CheckpointIO()
    local saved = assert(checkpoint_io:load(path))
    saved.loggers[1].log_dir = root .. "/lightning_logs/version_0"
    assert(checkpoint_io:save(saved, path))
    return path
  end

  it("is found by ckpt_path = 'last', and its number is not given again", function()
    local path = old_run()
    local second = fit(new_trainer(2), { ckpt_path = "last" })
    assert.equal(path, second.ckpt_path)
    assert.equal(2, second.current_epoch)
    assert.equal(root .. "/ltrain_logs/version_1", second.log_dir)
    assert.same({ "version_1" }, c.io.list_folder(root .. "/ltrain_logs"))
  end)

  it("is not checked where ltrain_logs has a checkpoint", function()
    old_run()
    fit(new_trainer(1))
    local third = fit(new_trainer(2), { ckpt_path = "last" })
    assert.equal(root .. "/ltrain_logs/version_1/checkpoints/last.ckpt", third.ckpt_path)
  end)

  it("is passed over where its file is not a checkpoint of ltrain", function()
    local folder = root .. "/lightning_logs/version_0/checkpoints"
    assert(c.io.make_folder(folder))
    child.write(folder .. "/last.ckpt", "PK\3\4 a file of another program")
    assert.is_nil(fit(new_trainer(1), { ckpt_path = "last" }).ckpt_path)
  end)

  it("is continued in its files by a logger with its version", function()
    old_run()
    local second = fit(new_trainer(2, { version = 0 }), { ckpt_path = "last" })
    assert.equal(root .. "/lightning_logs/version_0", second.log_dir)
    local text = assert(c.io.read_file(second.log_dir .. "/metrics.csv"))
    assert.equal("epoch,step,x\n0,0,1\n1,1,1\n", text)
    assert.is_nil(c.io.kind(root .. "/ltrain_logs"))
  end)

  it("is left alone by a fit with its version that does not resume", function()
    local path = old_run()
    local before = assert(c.io.read_file(path))
    local second = fit(new_trainer(1, { version = 0 }))
    assert.equal(root .. "/ltrain_logs/version_0", second.log_dir)
    assert.equal(before, c.io.read_file(path))
  end)

  it("is of no concern to a logger with a name of its own", function()
    old_run()
    local second = fit(new_trainer(1, { name = "mine" }), { ckpt_path = "last" })
    assert.is_nil(second.ckpt_path)
    assert.equal(root .. "/mine/version_0", second.log_dir)
  end)
end)
