-- spec/trainer/properties_spec.lua: what a Trainer says of its parts when it is asked.
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

describe("a Trainer", function()
  it("has its first checkpoint and early stopping callbacks as properties", function()
    local one, two = lt.callbacks.ModelCheckpoint(), lt.callbacks.ModelCheckpoint()
    local stop = lt.callbacks.EarlyStopping { monitor = "loss" }
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = { one, stop, two } }
    assert.equal(one, trainer.checkpoint_callback)
    assert.equal(stop, trainer.early_stopping_callback)
    assert.is_nil(tiny.trainer().checkpoint_callback)
    assert.is_nil(tiny.trainer().early_stopping_callback)
    local Own = lt.Trainer:extend("Own")
    assert.equal("ModelCheckpoint", getmetatable(Own().checkpoint_callback).__name)
  end)

  it("has the file that a run began with as ckpt_path", function()
    local path = tiny.folder() .. ".ckpt"
    local first = tiny.trainer()
    first:fit(tiny.Line(), tiny.same(1))
    assert.is_nil(first.ckpt_path)
    first:save_checkpoint(path)
    local trainer = tiny.trainer { max_epochs = 2 }
    trainer:fit(tiny.Line(), tiny.same(1), { ckpt_path = path })
    assert.equal(path, trainer.ckpt_path)
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.is_nil(trainer.ckpt_path)
    os.remove(path)
  end)

  it("says whether SIGTERM has come, before and after it was acted on", function()
    local root = tiny.folder()
    local trainer = tiny.trainer { default_root_dir = root, max_epochs = 2 }
    assert.is_false(trainer.received_sigterm)
    local net, asked = tiny.Line(), c.runtime.interrupted
    local before
    function net:on_after_backward()
      before = self.trainer.received_sigterm
      c.runtime.interrupted = function() return 1, 15 end
    end
    local ok = pcall(trainer.fit, trainer, net, tiny.same(2))
    c.runtime.interrupted = asked
    os.execute("rm -rf '" .. root .. "'")
    assert.is_false(ok)
    assert.is_false(before)
    assert.is_true(trainer.received_sigterm)
  end)
end)
