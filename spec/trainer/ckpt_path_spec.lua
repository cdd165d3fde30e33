-- spec/trainer/ckpt_path_spec.lua: the file that a run begins from: which one it is, and which are
-- refused.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.files.checkpoint_file"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local path
before_each(function() path = tiny.folder() .. ".ckpt" end)
after_each(function() os.remove(path) end)

describe("a file that cannot be used", function()
  local function fit_from(file)
    return tiny.error_of(function()
      tiny.trainer({ max_epochs = 2 }):fit(tiny.Line(), tiny.same(1), { ckpt_path = file })
    end)
  end

  local function saved_text()
    local trainer = tiny.trainer()
    trainer:fit(tiny.Line(), tiny.same(1))
    trainer:save_checkpoint(path)
    return c.io.read_file(path)
  end

  it("is named when it is absent", function()
    assert.matches("fit: cannot load the checkpoint: .*/no/such/file.ckpt",
      fit_from "/no/such/file.ckpt")
  end)

  it("is refused when bytes have changed", function()
    local text = saved_text()
    assert(c.io.write_file(path, text:sub(1, -2) .. string.char(text:byte(-1) ~ 1)))
    assert.matches("damaged: the bytes of tensor 'model.w' have changed", fit_from(path))
  end)

  it("is refused when it is cut, at any length", function()
    local text = saved_text()
    for _, n in ipairs { 0, 4, 8, 100, #text // 2, #text - 1 } do
      assert(c.io.write_file(path, text:sub(1, n)))
      assert.matches("fit: cannot load the checkpoint", fit_from(path))
    end
  end)

  it("is refused when another program wrote it, or a newer one of ours", function()
    assert(c.io.save_safetensors(path, { x = lt.zeros(1) }))
    assert.matches("not a checkpoint of ltrain", fit_from(path))
    assert(c.io.save_safetensors(path, {}, { ltrain = c.io.json_encode { format = 2 } }))
    assert.matches("checkpoint format 2; this ltrain reads up to 1", fit_from(path))
    assert(c.io.save_safetensors(path, {}, { ltrain = "{" }))
    assert.matches("cannot load the checkpoint", fit_from(path))
  end)

  it("is refused when the module is another one", function()
    saved_text()
    local net = tiny.Line()
    net.more = lt.parameter(lt.zeros(2))
    assert.matches("missing: more", tiny.error_of(function()
      tiny.trainer():fit(net, tiny.same(1), { ckpt_path = path })
    end))
  end)

  it("gives nil and the reason to those who read it themselves", function()
    local saved, message = checkpoint_file.read "/no/such/file.ckpt"
    assert.is_nil(saved)
    assert.matches("No such file", message)
  end)
end)

describe("ckpt_path", function()
  local root
  before_each(function() root = tiny.folder() end)
  after_each(function() os.execute("rm -rf '" .. root .. "'") end)

  local function trainer(options)
    local o = { default_root_dir = root, enable_progress_bar = false, max_epochs = 1,
      enable_model_summary = false, callbacks = { lt.callbacks.ModelCheckpoint {
        save_last = true } } }
    for name, value in pairs(options or {}) do o[name] = value end
    return lt.Trainer(o)
  end

  it("'last' finds the newest file of an earlier process, or starts afresh", function()
    local first = trainer()
    first:fit(tiny.Line(), tiny.same(2), { ckpt_path = "last" })
    assert.equal(2, first.global_step)
    local second = trainer { max_epochs = 2 }
    second:fit(tiny.Line(), tiny.same(2), { ckpt_path = "last" })
    assert.equal(4, second.global_step)
    assert.matches("version_0/checkpoints/last.ckpt$", second.ckpt_path)
  end)

  it("'best' is the best of this Trainer", function()
    local one, net = trainer(), tiny.Line()
    assert.matches("no best checkpoint is known", tiny.error_of(function()
      trainer():fit(tiny.Line(), tiny.same(1), { ckpt_path = "best" })
    end))
    function net.test_step() end
    one:fit(net, tiny.same(1))
    one:test(net, tiny.same(1), { ckpt_path = "best", verbose = false })
    assert.matches("epoch=0%-step=1.ckpt$", one.ckpt_path)
    one.ckpt_path = nil
    one:test(nil, tiny.same(1), { verbose = false })
    assert.matches("epoch=0%-step=1.ckpt$", one.ckpt_path)
  end)

  it("leaves callbacks what they have come to, except for a fit", function()
    local stopping = lt.callbacks.EarlyStopping { monitor = "x", patience = 2 }
    local saving = lt.callbacks.ModelCheckpoint { monitor = "x", save_top_k = 2 }
    local net = tiny.Line()
    function net:on_train_epoch_end() self:log("x", (self.trainer.current_epoch - 1) ^ 2) end
    function net.test_step() end
    local one = trainer { max_epochs = 9, callbacks = { stopping, saving } }
    one:fit(net, tiny.same(1))
    local epoch, worst = stopping.stopped_epoch, saving.kth_best_model_path
    assert.equal(3, epoch)
    one:test(net, tiny.same(1), { ckpt_path = "best", verbose = false })
    assert.matches("epoch=1%-step=2.ckpt$", one.ckpt_path)
    assert.same({ 3, worst }, { stopping.stopped_epoch, saving.kth_best_model_path })
  end)

  it("'best' of a new Trainer is that of the newest run that has one", function()
    local net = tiny.Line()
    function net.test_step() end
    trainer():fit(net, tiny.same(1))
    trainer():fit(net, tiny.same(2))
    local new = trainer()
    new:test(net, tiny.same(1), { ckpt_path = "best", verbose = false })
    assert.matches("version_1/checkpoints/epoch=0%-step=2.ckpt$", new.ckpt_path)
    os.remove(new.ckpt_path)
    local last = trainer()
    last:test(net, tiny.same(1), { ckpt_path = "best", verbose = false })
    assert.matches("version_0/checkpoints/epoch=0%-step=1.ckpt$", last.ckpt_path)
  end)
end)
