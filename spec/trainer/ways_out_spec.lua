-- spec/trainer/ways_out_spec.lua: runs that end early, and runs within runs, leave things as they
-- were.
local console = require "ltrain.core.console"
local hooks = require "ltrain.core.hooks"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local say <const> = console.say
before_each(function() console.say = function() end end)
after_each(function() console.say = say end)

local WORDS <const> = { "fit", "validate", "test", "predict" }

-- A Line with a dropout, and one that is in evaluation mode for good.
local function net_with_modes()
  local net = tiny.Line()
  net.live, net.frozen = lt.nn.Dropout(0.5), lt.nn.Dropout(0.5):eval()
  net.seen = lt.metrics.Mean()
  for _, step in ipairs { "validation_step", "test_step" } do
    net[step] = function(self, x)
      self.seen:update(x)
      self:log("seen", self.seen)
    end
  end
  return net
end

local function modes(net)
  return net.training and net.live.training and not net.frozen.training
end

-- Runs one of the four loops on two batches.
local function run(trainer, word, net, data)
  data = data or tiny.same(2)
  if word == "fit" then return trainer:fit(net, tiny.same(2), data) end
  return trainer[word](trainer, net, data, { verbose = false })
end

-- Whether a loop calls this hook of a module.
local function is_called(name, word)
  if name:find "checkpoint" or name:find "_dataloader$" then return false end
  if word == "fit" then return not name:find "test" and not name:find "predict" end
  local stage = word == "validate" and "validation" or word
  return name:find(stage, 1, true) or name:find "setup" or name:find "transfer"
end

describe("an error", function()
  it("in any hook of any loop leaves every module in the mode that it had", function()
    local ended = 0
    for _, word in ipairs(WORDS) do
      for _, name in ipairs(hooks.names "module") do
        if is_called(name, word) then
          local net, trainer = net_with_modes(), tiny.trainer()
          net[name] = function() error({ code = 7 }) end
          local ok, err = pcall(run, trainer, word, net)
          assert.is_true(modes(net), ("%s in %s"):format(name, word))
          assert.is_nil(trainer.running)
          if not ok then
            ended = ended + 1
            assert.equal(7, err.code, ("%s in %s"):format(name, word))
          end
        end
      end
    end
    assert.is_true(ended > 60, ended)
  end)

  it("in a loader, and a loader that is none, do the same", function()
    for _, word in ipairs(WORDS) do
      for _, fn in ipairs { function() error "no such file" end, function()
        return coroutine.wrap(function()
          coroutine.yield(lt.ones(2))
          error "no such file"
        end)
      end } do
        local net, trainer = net_with_modes(), tiny.trainer()
        assert.matches("no such file", tiny.error_of(run, trainer, word, net, fn))
        assert.is_true(modes(net))
      end
    end
  end)

  it("lets metrics begin anew in the next evaluation", function()
    local net, trainer, fails = net_with_modes(), tiny.trainer(), true
    function net:on_validation_batch_end(_, _, index)
      if fails and index == 1 then error "stop" end
    end
    assert.matches("stop", tiny.error_of(run, trainer, "validate", net,
      tiny.batches({ 1.0 }, { 1.0 })))
    fails = false
    run(trainer, "validate", net, tiny.batches({ 3.0 }, { 5.0 }))
    assert.equal(4.0, trainer.callback_metrics.seen)
  end)

  it("in a toggled step gives the other parameters their gradients back", function()
    local net = tiny.Line()
    net.v, net.automatic_optimization = lt.parameter(lt.tensor { 1.0 }), false
    function net:configure_optimizers()
      return { lt.optim.SGD({ self.w }, { lr = 0.1 }), lt.optim.SGD({ self.v }, { lr = 0.1 }) }
    end
    function net:training_step()
      self:toggle_optimizer(self:optimizers()[1])
      error "stop"
    end
    assert.matches("stop", tiny.error_of(run, tiny.trainer(), "fit", net))
    assert.is_true(net.v.requires_grad)
  end)
end)

describe("a run that is left early", function()
  it("has its modes and its rows: a break out of steps", function()
    for _, word in ipairs(WORDS) do
      local net, trainer = net_with_modes(), tiny.trainer()
      net.on_test_batch_end, net.on_validation_batch_end = function() end, function() end
      local left
      for place in trainer:steps(word, net, tiny.same(2), word == "fit" and tiny.same(2) or nil) do
        left = not net.training and place == "batch"
        if left then break end
      end
      assert.is_true(left)
      assert.is_true(modes(net), word)
      assert.equal("interrupted", trainer.state.status)
    end
  end)

  it("has its modes and its rows: a coroutine that is closed", function()
    local net, folder = net_with_modes(), tiny.folder()
    local trainer = tiny.trainer { logger = lt.loggers.CSVLogger(folder), log_every_n_steps = 1 }
    function net:training_step(x, index)
      self:log("index", index)
      if index == 2 then
        self:eval()
        coroutine.yield()
      end
      return self:loss(x)
    end
    local thread = coroutine.create(function() trainer:fit(net, tiny.same(4)) end)
    assert(coroutine.resume(thread))
    assert.is_table(trainer.running)
    assert(coroutine.close(thread))
    assert.is_nil(trainer.running)
    assert.equal("interrupted", trainer.state.status)
    local file <close> = assert(io.open(trainer.log_dir .. "/metrics.csv"))
    assert.equal("epoch,step,index\n0,0,0\n0,1,1\n", file:read "a")
    os.execute("rm -rf " .. folder)
  end)

  it("has them: a coroutine that an error ended and nobody closed", function()
    local net, trainer = net_with_modes(), tiny.trainer()
    function net.validation_step() error "stop" end
    local thread = coroutine.create(function() trainer:validate(net, tiny.same(1)) end)
    local ok, message = coroutine.resume(thread)
    assert.is_false(ok)
    assert.matches("ways_out_spec.lua:%d+: stop$", message)
    assert.is_nil(trainer.running)
    assert.is_true(modes(net))
  end)
end)

describe("a run in a hook of another Trainer's run", function()
  -- What the outer run draws, in its steps and after them; `inner(net)` runs in hook `where`.
  local function draws(where, inner)
    lt.seed(3)
    local net, seen = net_with_modes(), {}
    net[where] = function(self) inner(self) end
    function net:training_step(x)
      seen[#seen + 1] = table.concat(self.live(lt.ones(6)):tolist(), " ")
      return self:loss(x)
    end
    local callback = lt.Callback()
    function callback.on_train_batch_end() seen[#seen + 1] = lt.rand(1):item() end
    local trainer = tiny.trainer { callbacks = { callback }, num_sanity_val_steps = 0 }
    trainer:fit(net, tiny.same(3), tiny.same(1))
    assert.equal(trainer, net.trainer)
    assert.is_true(modes(net))
    return seen
  end

  it("gives back the module's trainer, and changes no draw of the outer run", function()
    local whole = draws("on_train_batch_start", function() end)
    for _, where in ipairs { "on_train_batch_start", "on_before_backward", "on_train_batch_end",
      "on_validation_epoch_end" } do
      assert.same(whole, draws(where, function() run(tiny.trainer(), "fit", net_with_modes()) end))
      assert.same(whole, draws(where, function(net) run(tiny.trainer(), "test", net) end))
      assert.same(whole, draws(where, function(net) run(tiny.trainer(), "predict", net) end))
    end
  end)

  it("has a place of its own in the loader of the outer run", function()
    local seen, net = {}, net_with_modes()
    local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.arange(4):to "f32":reshape(4, 1)),
      { batch_size = 1 })
    function net:training_step(batch)
      seen[#seen + 1] = batch[1]:item()
      if #seen == 2 then
        local other = tiny.Line()
        function other.training_step(_, inner) return other:loss(inner[1]) end
        tiny.trainer():fit(other, loader)
        seen.state = loader:state_dict().position
      end
      return self:loss(batch[1] + 1)
    end
    tiny.trainer({ max_epochs = 1 }):fit(net, loader)
    assert.same({ 0.0, 1.0, 2.0, 3.0, state = 2 }, seen)
  end)

  it("may fit in a validation, where there are no gradients", function()
    local net, steps = net_with_modes(), 0
    function net.on_validation_epoch_end()
      local trainer = tiny.trainer()
      trainer:fit(tiny.Line(), tiny.same(3))
      steps = trainer.global_step
    end
    run(tiny.trainer(), "validate", net)
    assert.equal(3, steps)
  end)
end)

describe("steps from outside", function()
  it("draw as a run that nobody steps, whatever is drawn between them", function()
    local function run_one(stepped)
      lt.seed(5)
      local net, seen = net_with_modes(), {}
      function net.on_before_backward() end
      function net:training_step(x)
        local y = self.live(lt.ones(8))
        seen[#seen + 1] = table.concat(y:tolist(), " ")
        return self:loss(x)
      end
      function net.on_train_batch_end() seen[#seen + 1] = lt.rand(1):item() end
      local trainer = tiny.trainer()
      if stepped then
        local between = {}
        for _ in trainer:steps("fit", net, tiny.same(2)) do
          between[#between + 1] = lt.rand(1):item()
          assert.is_true(between[#between] ~= between[#between - 1])
        end
        assert.is_true(#between > 4)
      else
        trainer:fit(net, tiny.same(2))
      end
      return seen
    end
    assert.same(run_one(false), run_one(true))
  end)
end)

describe("a hook", function()
  it("may remove itself", function()
    local net, callback, calls = tiny.Line(), lt.Callback(), {}
    function net:on_train_batch_end()
      calls[#calls + 1] = "module"
      self.on_train_batch_end = nil
    end
    function callback:on_train_batch_end()
      calls[#calls + 1] = "callback"
      self.on_train_batch_end = nil
    end
    tiny.trainer({ callbacks = { callback } }):fit(net, tiny.same(3))
    assert.same({ "callback", "module" }, calls)
  end)

  it("may remove its callback, or bring one, from the next batch on", function()
    local first, second, calls = lt.Callback(), lt.Callback(), {}
    function first.on_train_batch_end(_, trainer)
      calls[#calls + 1] = "first"
      trainer.callbacks = { second }
    end
    function second.on_train_batch_end() calls[#calls + 1] = "second" end
    tiny.trainer({ callbacks = { first } }):fit(tiny.Line(), tiny.same(3))
    assert.same({ "first", "second", "second" }, calls)
  end)

  it("that is not a function is named, and a step that removed itself", function()
    local function refused(name, value)
      local net = tiny.Line()
      net[name] = value
      return tiny.error_of(run, tiny.trainer(), "fit", net)
    end
    assert.matches("lua:%d+: fit: Line.on_train_start must be a function: got 5$",
      refused("on_train_start", 5))
    assert.matches("lua:%d+: fit: Line.training_step must be a function: got false$",
      refused("training_step", function(net, x)
        net.training_step = false
        return net:loss(x)
      end))
  end)
end)
