-- spec/trainer/trainer_spec.lua: what else a Trainer offers to scripts, modules and callbacks.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

describe("configure_callbacks", function()
  it("adds callbacks, which replace those of the same class", function()
    local Mine = lt.Callback:extend("Mine")
    function Mine:on_train_start() self.called = true end
    local old, new, plain = Mine(), Mine(), {}
    function plain.on_train_start() plain.called = true end
    local net = tiny.Line()
    function net.configure_callbacks() return { new, plain } end
    local trainer = tiny.trainer { callbacks = { old } }
    trainer:fit(net, tiny.same(1))
    assert.is_nil(old.called)
    assert.is_true(new.called)
    assert.is_true(plain.called)
    assert.equal(2, #trainer.callbacks)
  end)
end)

describe("estimated_stepping_batches", function()
  local function estimate(options)
    local net, steps = tiny.Line(), nil
    function net:configure_optimizers()
      steps = self.trainer.estimated_stepping_batches
      return tiny.Line.configure_optimizers(self)
    end
    options.max_epochs = options.max_epochs or 3
    tiny.trainer(options):fit(net, tiny.same(5))
    return steps
  end

  it("is batches over window size, times epochs, at most max_steps", function()
    assert.equal(15, estimate {})
    assert.equal(9, estimate { accumulate_grad_batches = 2 })
    assert.equal(7, estimate { max_steps = 7 })
    assert.equal(6, estimate { limit_train_batches = 2 })
  end)
end)

describe("the table of validate", function()
  it("has a line per metric and a column a loader", function()
    local shown
    local print_before = console.print
    console.print = function(text) shown = text end
    console.table("validate", { { loss = 0.123456789, n = 3 }, { loss = 2.0 } })
    console.print = print_before
    assert.equal("loss          0.123457             2\n" ..
                 "n                    3              ", shown)
  end)
end)

describe("a checkpoint that cannot be written", function()
  it("ends the fit with the reason; the one before can be resumed", function()
    local root = tiny.folder()
    local net = tiny.Line()
    local saves, before = 0, {}
    for _, name in ipairs { "save_safetensors", "save_later" } do -- the latter of a device
      before[name] = c.io[name]
      c.io[name] = function(...)
        saves = saves + 1
        if saves > 1 then return nil, "save: cannot write last.ckpt: No space left on device" end
        return before[name](...)
      end
    end
    local function trainer()
      return tiny.trainer { max_epochs = 3, enable_checkpointing = true, callbacks = {
        lt.callbacks.ModelCheckpoint { dirpath = root, save_top_k = 0, save_last = true } } }
    end
    local message = tiny.error_of(function() trainer():fit(net, tiny.same(2)) end)
    for name, save in pairs(before) do c.io[name] = save end
    assert.matches("save_checkpoint: cannot write last.ckpt: No space left", message)
    local again = trainer()
    again:fit(tiny.Line(), tiny.same(2), { ckpt_path = root .. "/last.ckpt" })
    assert.equal(6, again.global_step)
    os.execute("rm -rf '" .. root .. "'")
  end)
end)

describe("save_checkpoint", function()
  it("needs a module and a path", function()
    local trainer = tiny.trainer()
    assert.matches("no module is attached", tiny.error_of(trainer.save_checkpoint, trainer, "x"))
    assert.matches("the path must be a string", tiny.error_of(trainer.save_checkpoint, trainer, 3))
  end)

  it("refuses two callbacks whose states have the same key", function()
    local Mine = lt.Callback:extend("Mine")
    function Mine.state_dict() return { 1 } end
    local trainer = tiny.trainer { callbacks = { Mine(), Mine() } }
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.matches("two callbacks have the state_key 'Mine'",
      tiny.error_of(trainer.save_checkpoint, trainer, tiny.folder()))
  end)
end)

describe("log_dir", function()
  local root
  before_each(function() root = tiny.folder() end)
  after_each(function() os.execute("rm -rf '" .. root .. "'") end)

  it("is the folder of the first logger that writes files, before, in and after a run", function()
    local trainer = tiny.trainer { logger = { lt.Logger(), lt.loggers.CSVLogger(root) } }
    assert.equal(root .. "/ltrain_logs/version_0", trainer.log_dir)
    assert.equal(trainer.log_dir .. "/checkpoints", trainer:checkpoint_folder())
    local net, seen = tiny.Line(), nil
    function net:on_train_start() seen = self.trainer.log_dir end
    trainer:fit(net, tiny.same(1))
    assert.equal(trainer.log_dir, seen)
  end)

  it("is nil without such a logger", function()
    assert.is_nil(tiny.trainer().log_dir)
    assert.is_nil(tiny.trainer { logger = lt.Logger() }.log_dir)
  end)

  it("is a property of subclasses as well", function()
    local Mine = lt.Trainer:extend("Mine")
    local trainer = Mine { logger = lt.loggers.CSVLogger(root, { version = "v" }) }
    assert.equal(root .. "/ltrain_logs/v", trainer.log_dir)
  end)

  it("that cannot be written is reported before training", function()
    assert(io.open(root, "w")):close()
    local net, steps = tiny.Line(), 0
    function net:training_step(x)
      steps = steps + 1
      return self:loss(x)
    end
    local trainer = tiny.trainer { logger = lt.loggers.CSVLogger(root .. "/in") }
    local text = "logger: write: cannot write in %s/in/ltrain_logs/version_0: Not a directory"
    assert.matches(text:format(root), tiny.error_of(trainer.fit, trainer, net, tiny.same(1)), 1,
      true)
    assert.equal(0, steps)
  end)
end)
