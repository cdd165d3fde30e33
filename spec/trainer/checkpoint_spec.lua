-- spec/trainer/checkpoint_spec.lua: files hold all that a run needs; damaged ones are refused.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.files.checkpoint_file"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- Uses all that a resumed run must find again: noise, momentum, schedule, metric, buffer, log sums.
local Net = lt.Module:extend("Net")

function Net:init()
  self.w = lt.parameter(lt.tensor { 0.5, -0.25 })
  self:register_buffer("seen", lt.zeros(1))
  self.mean = lt.metrics.Mean()
end

function Net:training_step(x)
  local noise = lt.randn(2)
  local loss = ((x * self.w + noise * 0.1 - 1) ^ 2):mean()
  self.seen:add_(1)
  self.mean:update(loss)
  self:log("loss", loss, { on_epoch = true })
  self:log("mean", self.mean, { on_step = false, on_epoch = true })
  return loss
end

function Net:validation_step(x)
  self:log("val_loss", ((x * self.w - 1) ^ 2):mean() + lt.rand(1))
end

function Net:on_train_epoch_end() self:log("draw", lt.rand(1)) end

function Net:configure_optimizers()
  local optimizer = lt.optim.Adam(self:parameters(), { lr = 0.05 })
  return { optimizer }, { { interval = "step", scheduler = lt.optim.StepLR(optimizer, 3) } }
end

-- A loader whose order depends on the epoch, as a shuffling one's does.
local function loader()
  local l = { epoch = 0 }
  function l.length() return 4 end
  function l:set_epoch(epoch) self.epoch = epoch end
  function l:batches(position)
    local i = position or 0
    return function()
      i = i + 1
      if i <= 4 then return lt.tensor { (i * (self.epoch + 1)) % 5 + 0.5, 1.0 } end
    end
  end
  return l
end

-- Rows that a run logs.
local Rows = lt.Logger:extend("Rows")
function Rows:init() self.rows = {} end
function Rows:log_metrics(metrics, step)
  local parts = { ("step=%d"):format(step) }
  for _, name in ipairs { "epoch", "loss_step", "loss_epoch", "mean", "val_loss", "draw" } do
    if metrics[name] then parts[#parts + 1] = ("%s=%a"):format(name, metrics[name]) end
  end
  self.rows[#self.rows + 1] = table.concat(parts, " ")
end

local function trainer_with(options, callback)
  local logger = Rows()
  local o = { max_epochs = 3, logger = logger, log_every_n_steps = 1, callbacks = { callback },
    val_check_interval = 0.5, num_sanity_val_steps = 0 }
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  return trainer, logger
end

-- A whole run that also writes a file when `where` says so.
local function whole_run(path, hook, step, options)
  lt.seed(7)
  local callback = lt.Callback()
  callback[hook] = function(_, trainer)
    if trainer.global_step == step and not c.io.kind(path) then
      trainer:request_checkpoint(path)
    end
  end
  local net = Net()
  local trainer, logger = trainer_with(options, callback)
  trainer:fit(net, loader(), loader())
  return net, logger.rows, trainer
end

local function resumed_run(path, options)
  lt.seed(1)
  local net = Net()
  lt.rand(3)
  local trainer, logger = trainer_with(options, lt.Callback())
  trainer:fit(net, loader(), loader(), { ckpt_path = path })
  return net, logger.rows, trainer
end

local function bits(tensor)
  local list = {}
  for i, value in ipairs(tensor:tolist()) do list[i] = ("%a"):format(value) end
  return list
end

local function same_end(path, hook, step, options)
  local net, rows, trainer = whole_run(path, hook, step, options)
  local again, later, other = resumed_run(path, options)
  assert.same(bits(net.w), bits(again.w))
  assert.same(net.seen:tolist(), again.seen:tolist())
  assert.equal(trainer.global_step, other.global_step)
  assert.equal(trainer.current_epoch, other.current_epoch)
  assert.is_true(#later > 0 and #later < #rows)
  assert.same(table.move(rows, #rows - #later + 1, #rows, 1, {}), later)
end

local path
before_each(function() path = tiny.folder() .. ".ckpt" end)
after_each(function() os.remove(path) end)

describe("a resumed run", function()
  it("is the uninterrupted one, bit for bit, from mid-epoch", function()
    same_end(path, "on_train_batch_end", 5)
  end)

  it("from a validation in mid-epoch", function()
    same_end(path, "on_validation_end", 6)
  end)

  it("from the last batch of an epoch", function()
    same_end(path, "on_train_batch_end", 8)
  end)

  it("from the end of an epoch", function()
    same_end(path, "on_train_epoch_end", 8)
  end)

  it("with accumulated gradients, in mid-window", function()
    local saved = 0
    local net, rows
    do
      lt.seed(7)
      local callback = lt.Callback()
      function callback.on_train_batch_end(_, trainer, _, _, _, batch_idx)
        if trainer.current_epoch == 1 and batch_idx == 0 then
          saved = saved + 1
          trainer:request_checkpoint(path)
        end
      end
      net = Net()
      local trainer, logger = trainer_with({ accumulate_grad_batches = 2 }, callback)
      trainer:fit(net, loader(), loader())
      rows = logger.rows
    end
    assert.equal(1, saved)
    local again, later = resumed_run(path, { accumulate_grad_batches = 2 })
    assert.same(bits(net.w), bits(again.w))
    assert.same(table.move(rows, #rows - #later + 1, #rows, 1, {}), later)
  end)

  it("from a generator, which is replayed", function()
    local function generator()
      return coroutine.wrap(function()
        for i = 1, 4 do coroutine.yield(lt.tensor { i * 0.5, 1.0 } + lt.rand(2)) end
      end)
    end
    local function run(ckpt_path, save)
      lt.seed(7)
      local callback, net = lt.Callback(), Net()
      function callback.on_train_batch_end(_, trainer)
        if save and trainer.global_step == 6 then trainer:request_checkpoint(path) end
      end
      local trainer = trainer_with({ max_epochs = 2, val_check_interval = 1.0 }, callback)
      trainer:fit(net, generator, { ckpt_path = ckpt_path })
      return bits(net.w)
    end
    local net = run(nil, true)
    assert.same(net, run(path, false))
  end)

  it("resumes in mid-validation by doing it again", function()
    local saved
    lt.seed(7)
    local net = Net()
    local callback = lt.Callback()
    function callback.on_validation_batch_end(_, trainer)
      if not saved and trainer.global_step == 6 then
        saved = true
        trainer:save_checkpoint(path)
      end
    end
    local trainer, logger = trainer_with(nil, callback)
    trainer:fit(net, loader(), loader())
    local again, later = resumed_run(path)
    assert.same(bits(net.w), bits(again.w))
    local rows = logger.rows
    assert.same(table.move(rows, #rows - #later + 1, #rows, 1, {}), later)
  end)
end)

describe("a checkpoint", function()
  it("saved after validate or predict still has what the fit before them resumes from", function()
    lt.seed(7)
    local function fit(max_epochs, options)
      local net, trainer = Net(), trainer_with { max_epochs = max_epochs }
      trainer:fit(net, loader(), nil, options)
      return net, trainer
    end
    local whole = fit(2)
    lt.seed(7)
    local net, trainer = fit(1)
    trainer:validate(net, loader())
    trainer:save_checkpoint(path)
    local resumed = fit(2, { ckpt_path = path })
    assert.same(bits(whole.w), bits(resumed.w))
    assert.same({ 8 }, resumed.seen:tolist())
  end)

  it("has the tensors under the names of the design, readable by other tools", function()
    whole_run(path, "on_train_batch_end", 5)
    local tensors, metadata = c.io.load_safetensors(path)
    for _, name in ipairs { "model.w", "model.seen", "optim.0.w.exp_avg" } do
      assert(tensors[name], name)
    end
    local text = c.io.json_decode(metadata.ltrain)
    assert.equal(1, text.format)
    assert.equal(1, text.epoch)
    assert.equal(5, text.global_step)
    assert.equal(7, text.random.seed)
    assert.equal("integer", math.type(text.crc["model.w"]))
  end)

  it("has a shared tensor once, under its first path, and its other names", function()
    local net = tiny.Line()
    net.again = net.w
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.same(1))
    trainer:save_checkpoint(path)
    local file <close> = io.open(path, "rb")
    local header = c.io.json_decode(file:read(("<I8"):unpack(file:read(8))))
    assert.is_nil(header["model.again"])
    assert.is_table(header["model.w"])
    assert.equal('{"model.again":"model.w"}', header.__metadata__["ltrain.aliases"])
    local state = checkpoint_file.read(path).state_dict
    assert.equal(state.w:item(), state.again:item())
    -- A module that does not share takes both; one that shares, either.
    local apart, shared = tiny.Line(), tiny.Line()
    apart.again, shared.again = lt.parameter(lt.zeros(1)), shared.w
    apart:load_state_dict(state)
    assert.equal(net.w:item(), apart.again:item())
    shared:load_state_dict(state)
    assert.equal(net.w:item(), shared.w:item())
    local status, out = require "spec.cli.child".run { "info", path }
    assert.equal(0, status)
    assert.matches("weights +1 numbers\n +again %[1%] f32\n +w %[1%] f32, shared with again\n", out)
  end)

  it("is not written under a name of PyTorch's files", function()
    local trainer = tiny.trainer()
    trainer:fit(tiny.Line(), tiny.same(1))
    for _, suffix in ipairs { ".pt", ".pth", ".pth.tar" } do
      assert.matches("save_checkpoint: .*a name of PyTorch's files, and a checkpoint is none: "
        .. "name it .ckpt; lt.save%(path, model:state_dict%(%)%) writes weights that torch.load",
        tiny.error_of(trainer.save_checkpoint, trainer, path .. suffix))
      assert.is_nil(c.io.kind(path .. suffix))
    end
  end)

  it("holds what on_save_checkpoint adds, and gives it back", function()
    local net, given = tiny.Line(), nil
    function net:on_save_checkpoint(saved)
      saved.mine = { 1.5, "two", { deep = lt.tensor { 3 } }, [7] = true }
    end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.same(1))
    trainer:save_checkpoint(path)
    function net:on_load_checkpoint(saved) given = saved.mine end
    tiny.trainer({ max_epochs = 2 }):fit(net, tiny.same(1), { ckpt_path = path })
    assert.equal(1.5, given[1])
    assert.equal("two", given[2])
    assert.equal(3, given[3].deep:item())
    assert.is_true(given[7])
  end)

  it("refuses what cannot be saved, naming its place", function()
    local net = tiny.Line()
    function net:on_save_checkpoint(saved) saved.mine = { fn = print } end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.same(1))
    assert.matches("save_checkpoint: user.mine.fn cannot be saved: it is a function",
      tiny.error_of(trainer.save_checkpoint, trainer, path))
    assert.is_nil(c.io.kind(path))
  end)

  it("with weights only cannot be trained on, but tested", function()
    local net, trainer = tiny.Line(), tiny.trainer()
    trainer:fit(net, tiny.same(1))
    local w = net.w:item()
    trainer:save_checkpoint(path, { weights_only = true })
    assert.matches("has weights only", tiny.error_of(function()
      tiny.trainer():fit(tiny.Line(), tiny.same(1), { ckpt_path = path })
    end))
    local other = tiny.Line()
    function other.test_step() end
    tiny.trainer():test(other, tiny.same(1), { ckpt_path = path, verbose = false })
    assert.equal(w, other.w:item())
  end)

  it("makes a module with its hyper-parameters", function()
    local Sized = tiny.Line:extend("Sized")
    function Sized:init(o)
      tiny.Line.init(self, o)
      self:save_hyperparameters(o)
    end
    local net, trainer = Sized { lr = 0.25 }, tiny.trainer()
    trainer:fit(net, tiny.same(1))
    trainer:save_checkpoint(path)
    local again = Sized:load_from_checkpoint(path)
    assert.equal(0.25, again.lr)
    assert.equal(net.w:item(), again.w:item())
    assert.equal(0.5, Sized:load_from_checkpoint(path, { lr = 0.5 }).lr)
    local Placed = tiny.Line:extend "Placed"
    function Placed:init(kind, lr)
      tiny.Line.init(self, { lr = lr })
      self.kind = kind
      self:save_hyperparameters({ lr = lr })
    end
    again = Placed:load_from_checkpoint(path, { kind = lt.nn.ReLU() })
    assert.equal("ReLU() 0.25", tostring(again.kind) .. " " .. again.lr)
    local Other = Sized:extend "Other"
    function Other:init(o)
      Sized.init(self, o)
      assert(o.strict == nil)
      self.more = lt.parameter(lt.ones(1))
    end
    assert.matches("missing: more", tiny.error_of(Other.load_from_checkpoint, Other, path))
    local part = Other:load_from_checkpoint(path, { strict = false })
    assert.equal(net.w:item(), part.w:item())
    local there = Sized:load_from_checkpoint(path, { map_location = "fake:1" })
    assert.equal("fake:1", there.device)
    assert.same(again:state_dict().w:tolist(), there:state_dict().w:tolist())
  end)

  it("load_from_checkpoint says that a file holds no hyper-parameters", function()
    local Wide = lt.Module:extend "Wide"
    function Wide:init(o) self.layer = lt.nn.Linear(1, o.width or 3) end
    function Wide:training_step(x) return self.layer(x:reshape(-1, 1)):mean() end
    function Wide:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local trainer = tiny.trainer()
    trainer:fit(Wide { width = 2 }, tiny.same(1))
    trainer:save_checkpoint(path)
    local ok, text = pcall(function() return (Wide:load_from_checkpoint(path)) end)
    assert.is_false(ok)
    assert.matches("^spec/trainer/checkpoint_spec.lua:%d+: load_state_dict: the tensors do not fit "
      .. "Wide %(read from .*%.ckpt%)\n.*\n  load_from_checkpoint: '[^\n]*' contains no "
      .. "hyper%-parameters: call "
      .. "self:save_hyperparameters%(o%) in init, or give them: ", text)
    assert.equal(2, Wide:load_from_checkpoint(path, { width = 2 }).layer.weight.shape[1])
    for wanted, args in pairs {
      ["call it with a colon, Net:load_from_checkpoint%(file%): got '.*' instead"] = { path },
      ["file must be a string: got nil"] = { Wide },
      ["overrides must be a table of options for init: got 3"] = { Wide, path, 3 },
    } do
      assert.matches("load_from_checkpoint: " .. wanted,
        tiny.error_of(lt.Module.load_from_checkpoint, table.unpack(args)))
    end
  end)
end)

describe("Ctrl-C", function()
  it("ends the step, saves, and raises what the process turns into 130", function()
    local interrupt = require "ltrain.core.interrupt"
    local root = tiny.folder()
    local trainer = tiny.trainer { default_root_dir = root, enable_checkpointing = true }
    local pressed = c.runtime.interrupted
    local net = tiny.Line()
    function net.on_after_backward() c.runtime.interrupted = function() return 1 end end
    local ok, value = pcall(trainer.fit, trainer, net, tiny.same(3))
    c.runtime.interrupted = pressed
    assert.is_false(ok)
    assert.is_true(interrupt.is(value))
    assert.equal("interrupted: saved " .. root .. "/checkpoints/interrupted.ckpt", tostring(value))
    assert.equal(1, trainer.global_step)
    local again = tiny.trainer { default_root_dir = root }
    again:fit(tiny.Line(), tiny.same(3), { ckpt_path = "last" })
    assert.equal(3, again.global_step)
    os.execute("rm -rf '" .. root .. "'")
  end)
end)

-- A fit of one weight, and the same resumed from the file that `save` has the callback write.
local function both_ends(hook, options, Module, data, when)
  local function fit(from)
    local net, callback = Module(), lt.Callback()
    callback[hook] = function(_, trainer, _, _, _, index)
      if not from and when(trainer, index) then trainer:request_checkpoint(path) end
    end
    local o = { callbacks = { callback } }
    for name, value in pairs(options()) do
      if name == "callbacks" then value = { callback, table.unpack(value) } end
      o[name] = value
    end
    local trainer = tiny.trainer(o)
    trainer:fit(net, data(), nil, { ckpt_path = from })
    return net, trainer
  end
  local net = fit()
  return net, (fit(path))
end

describe("a file saved at the last batch of an epoch", function()
  local function ends(callback)
    local net, again = both_ends("on_train_batch_end", function()
      return { max_epochs = 2, callbacks = { callback() } }
    end, tiny.Line, function() return tiny.same(2) end, function(trainer)
      return trainer.global_step == 2
    end)
    assert.same(bits(net.w), bits(again.w))
    return net.w:item()
  end

  it("resumes with the epoch in the mean of StochasticWeightAveraging", function()
    ends(function()
      return lt.callbacks.StochasticWeightAveraging { swa_lrs = 0.1, swa_epoch_start = 0 }
    end)
  end)

  it("resumes with the epoch in the mean of EMAWeightAveraging", function()
    ends(function()
      return lt.callbacks.EMAWeightAveraging { decay = 0.5, update_every_n_steps = 100,
        update_starting_at_epoch = 0 }
    end)
  end)

  it("has is_last_batch true in on_train_epoch_end", function()
    local seen = {}
    both_ends("on_train_batch_end", function()
      return { callbacks = { { on_train_epoch_end = function(_, trainer)
        seen[#seen + 1] = trainer.is_last_batch
      end } } }
    end, tiny.Line, function() return tiny.same(2) end, function(trainer)
      return trainer.global_step == 2
    end)
    assert.same({ true, true }, seen)
  end)
end)

describe("manual optimization", function()
  -- Gradients of two batches in a step.
  local Manual = tiny.Line:extend "Manual"
  function Manual:init()
    tiny.Line.init(self)
    self.automatic_optimization = false
  end
  function Manual:training_step(x, index)
    self:manual_backward(self:loss(x))
    if index % 2 == 0 then return end
    self:optimizers():step()
    self:optimizers():zero_grad()
  end

  local function end_of(index_of_save)
    return both_ends("on_train_batch_end", function() return {} end, Manual,
      function() return tiny.same(2) end, function(_, index) return index == index_of_save end)
  end

  it("resumes between two steps with the gradients of the batches before", function()
    local net, again = end_of(0)
    assert.same(bits(net.w), bits(again.w))
  end)

  it("has no gradients in the file when the script has cleared them", function()
    end_of(1)
    assert.is_nil(assert(checkpoint_file.read(path)).gradients)
  end)

  it("warns of an epoch without a step only where the whole epoch had none", function()
    local said = {}
    local console <const> = require "ltrain.core.console"
    local say = console.say
    console.say = function(text) said[#said + 1] = text end
    local ok, message = pcall(end_of, 1)
    console.say = say
    assert(ok, message)
    assert.equal("", table.concat(said, "\n"))
  end)
end)

describe("an iterable data set with a short last batch", function()
  it("resumes after that batch without another validation", function()
    local Numbers = lt.data.IterableDataset:extend "Numbers"
    function Numbers.iterate()
      local i = 0
      return function()
        i = i + 1
        if i <= 5 then return lt.tensor { i * 0.1 } end
      end
    end
    local function validations(from)
      local count, net = 0, tiny.Line()
      function net.validation_step() end
      local callback = { on_validation_end = function() count = count + 1 end }
      function callback.on_train_batch_end(_, trainer, _, _, _, index)
        if not from and index == 2 then
          count = 0
          trainer:save_checkpoint(path)
        end
      end
      tiny.trainer { val_check_interval = 2, callbacks = { callback }, num_sanity_val_steps = 0 }
        :fit(net, lt.data.DataLoader(Numbers(), { batch_size = 2 }), tiny.same(1),
          { ckpt_path = from })
      return count
    end
    assert.equal(validations(), validations(path))
  end)
end)
