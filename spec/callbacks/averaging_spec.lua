-- spec/callbacks/averaging_spec.lua: EMAWeightAveraging and StochasticWeightAveraging: weights by
-- hand, what validation and files have, resuming, ranks.
local lt = require "ltrain"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

local callbacks <const> = lt.callbacks

-- w' = w - 0.1 * 2 (w - 2) * 2.5: the distance from 2 halves with each step.
local START <const> = 0.5
local function weight(step) return 2 - (2 - START) / 2 ^ step end

local function trainer(callback, options)
  local all = { max_epochs = 3, callbacks = { callback }, logger = false,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false }
  for name, value in pairs(options or {}) do all[name] = value end
  return lt.Trainer(all)
end

-- A line that notes the weight that it is validated with.
local function watched()
  local net, seen = tiny.Line(), {}
  function net:validation_step() seen[#seen + 1] = self.w:item() end
  return net, seen
end

-- The exponential average after `steps` steps.
local function ema(steps, decay)
  local average = weight(1)
  for step = 2, steps do average = decay * average + (1 - decay) * weight(step) end
  return average
end

describe("EMAWeightAveraging", function()
  it("validates with the average, trains the weights, and leaves the average", function()
    local net, seen = watched()
    trainer(callbacks.EMAWeightAveraging { decay = 0.5 }):fit(net, tiny.same(2), tiny.same(1))
    assert.near(START, seen[1], 1e-6) -- the sanity check: there is no average yet
    for epoch = 1, 3 do assert.near(ema(2 * epoch, 0.5), seen[epoch + 1], 1e-6) end
    assert.near(ema(6, 0.5), net.w:item(), 1e-6)
  end)

  it("updates every n steps, from a step or an epoch on", function()
    local function averaged(options)
      local net = tiny.Line()
      trainer(callbacks.EMAWeightAveraging(options)):fit(net, tiny.same(2))
      return net.w:item()
    end
    assert.near(0.5 * (0.5 * weight(1) + 0.5 * weight(3)) + 0.5 * weight(5),
      averaged { decay = 0.5, update_every_n_steps = 2 }, 1e-6)
    assert.near(weight(6), averaged { decay = 0.5, update_starting_at_step = 5 }, 1e-6)
    assert.near(0.5 * weight(4) + 0.5 * weight(6),
      averaged { decay = 0.5, update_starting_at_step = 100, update_starting_at_epoch = 1 }, 1e-6)
    assert.near(weight(6), averaged { update_starting_at_step = 100 }, 1e-6)
  end)

  it("saves both, and resumes exactly, in mid-epoch too", function()
    for _, steps in ipairs { 2, 3 } do
      local folder = tiny.folder()
      local whole = watched()
      trainer(callbacks.EMAWeightAveraging { decay = 0.5 }):fit(whole, tiny.same(2), tiny.same(1))
      local path, cut = folder .. "/cut.ckpt", watched()
      local first = trainer(callbacks.EMAWeightAveraging { decay = 0.5 }, { max_steps = steps })
      first:fit(cut, tiny.same(2), tiny.same(1))
      first:save_checkpoint(path)
      local saved = first.strategy.checkpoint_io:load(path)
      assert.near(ema(steps, 0.5), saved.state_dict.w:item(), 1e-6)
      assert.near(weight(steps), saved.current_model_state.w:item(), 1e-6)
      local rest = watched()
      trainer(callbacks.EMAWeightAveraging { decay = 0.5 }):fit(rest, tiny.same(2), tiny.same(1),
        { ckpt_path = path })
      assert.equal(whole.w:item(), rest.w:item())
      local alone, seen = watched()
      trainer(callbacks.EMAWeightAveraging { decay = 0.5 }):validate(alone, tiny.same(1),
        { ckpt_path = path, verbose = false })
      assert.near(ema(steps, 0.5), seen[1], 1e-6)
    end
  end)

  it("continues with the trained weights in a second fit", function()
    local net, whole = tiny.Line(), tiny.Line()
    local one = trainer(callbacks.EMAWeightAveraging { decay = 0.5 }, { max_epochs = 1 })
    one:fit(net, tiny.same(2))
    one.max_epochs = 3
    one:fit(net, tiny.same(2))
    trainer(callbacks.EMAWeightAveraging { decay = 0.5 }):fit(whole, tiny.same(2))
    assert.equal(whole.w:item(), net.w:item())
  end)

  it("gives the trained weights back when validation fails", function()
    local net = tiny.Line()
    function net.validation_step() error "broken" end
    pcall(lt.Trainer.fit, trainer(callbacks.EMAWeightAveraging { decay = 0.5 },
      { num_sanity_val_steps = 0 }), net, tiny.same(2), tiny.same(1))
    assert.near(weight(2), net.w:item(), 1e-6)
  end)

  it("saves averages alone where weights are saved alone", function()
    local net, path = tiny.Line(), tiny.folder() .. "/w.ckpt"
    local t = trainer(callbacks.EMAWeightAveraging { decay = 0.5 })
    t:fit(net, tiny.same(2))
    t:save_checkpoint(path, { weights_only = true })
    local saved = t.strategy.checkpoint_io:load(path)
    assert.near(ema(6, 0.5), saved.state_dict.w:item(), 1e-6)
    assert.is_nil(saved.current_model_state)
  end)

  it("has the same averages on ranks, where one has a batch less", function()
    local script = [[
      local n = lt.dist.world_size()
      local net = lt.nn.Linear(1, 1)
      lt.nn.init.constant_(net.weight, 0.5)
      lt.nn.init.constant_(net.bias, 0.0)
      function net:training_step(batch) return (self(batch[1]) - batch[1] * 2):square():mean() end
      function net:validation_step(batch) self:log("w", self.weight:item()) end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local data = lt.data.TensorDataset(lt.arange(5):reshape{5, 1}:to "f32" / 5)
      local loader = lt.data.DataLoader(data, {batch_size = 2 // n})
      local t = lt.Trainer{max_epochs = 2, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false,
        callbacks = {lt.callbacks.EMAWeightAveraging{decay = 0.5}}}
      t:fit(net, loader, loader)
      local all = lt.dist.all_gather(net.weight:item())
      for _, w in ipairs(all) do assert(w == all[1]) end
      if lt.dist.rank() == 0 then print(("%.6f %.6f"):format(all[1], t.callback_metrics.w)) end
    ]]
    local one = support.passes(script)
    local two = support.ranks(2, script)
    assert.equal(one:match "[%d.]+ [%d.]+\n", two:match "[%d.]+ [%d.]+\n")
  end)

  it("reports wrong options", function()
    assert.matches("decay must be at most 1: got 2",
      tiny.error_of(callbacks.EMAWeightAveraging, { decay = 2 }))
    assert.matches("unknown option 'decai'; did you mean 'decay'",
      tiny.error_of(callbacks.EMAWeightAveraging, { decai = 0.5 }))
  end)
end)

describe("StochasticWeightAveraging", function()
  -- Weights by epochs of two steps, with the rates of SWA from an epoch on.
  local function mean(first, epochs, rates)
    local w, total = START, 0.0
    for epoch = 0, epochs - 1 do
      local rate = rates[epoch + 1] or 0.1
      for _ = 1, 2 do w = w - rate * 2 * (w - 2) * 2.5 end
      if epoch >= first then total = total + w end
    end
    return total / (epochs - first), w
  end

  it("averages the epochs, with rates of its own", function()
    local net, seen = watched()
    local swa = callbacks.StochasticWeightAveraging { swa_lrs = 0.02, swa_epoch_start = 0.5,
      annealing_epochs = 2, annealing_strategy = "linear" }
    trainer(swa, { max_epochs = 4 }):fit(net, tiny.same(2), tiny.same(1))
    local rates = { 0.1, 0.1, 0.06, 0.02 }
    assert.near((mean(2, 4, rates)), net.w:item(), 1e-6)
    assert.near(weight(4), seen[3], 1e-6)
    assert.near((mean(2, 3, rates)), seen[4], 1e-6)
    assert.near((mean(2, 4, rates)), seen[5], 1e-6)
  end)

  it("takes the place of schedulers, and resumes exactly", function()
    local function scheduled()
      local net = tiny.Line()
      function net:configure_optimizers()
        local sgd = lt.optim.SGD(self:parameters(), { lr = 0.1 })
        return { optimizer = sgd, lr_scheduler = lt.optim.StepLR(sgd, 1, { gamma = 0.5 }) }
      end
      return net
    end
    local function swa()
      return callbacks.StochasticWeightAveraging { swa_lrs = 0.02, swa_epoch_start = 1,
        annealing_epochs = 0 }
    end
    local whole, path = scheduled(), tiny.folder() .. "/cut.ckpt"
    trainer(swa(), { max_epochs = 4 }):fit(whole, tiny.same(2))
    assert.near((mean(1, 4, { 0.1, 0.02, 0.02, 0.02 })), whole.w:item(), 1e-6)
    for steps = 1, 7 do
      local cut = trainer(swa(), { max_epochs = 4, max_steps = steps })
      cut:fit(scheduled(), tiny.same(2))
      cut:save_checkpoint(path)
      local rest = scheduled()
      trainer(swa(), { max_epochs = 4 }):fit(rest, tiny.same(2), { ckpt_path = path })
      assert.equal(whole.w:item(), rest.w:item(), steps)
    end
  end)

  it("computes the statistics of batch norm of all training data", function()
    local net = lt.nn.Sequential(lt.nn.Linear(2, 3), lt.nn.BatchNorm1d(3))
    function net:training_step(batch) return (self(batch[1]) - 1):square():mean() end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    lt.seed(3)
    local x = lt.randn(8, 2)
    local loader = lt.data.DataLoader(lt.data.TensorDataset(x), { batch_size = 4 })
    trainer(callbacks.StochasticWeightAveraging { swa_lrs = 0.1, swa_epoch_start = 0 })
      :fit(net, loader)
    local mean_of = net[1](x):mean(1)
    assert.is_true(lt.allclose(mean_of, net[2].running_mean, { atol = 1e-6 }))
  end)

  it("reports what does not fit", function()
    assert.matches("option 'swa_lrs' is required",
      tiny.error_of(callbacks.StochasticWeightAveraging, {}))
    assert.matches("swa_lrs must be above 0: got %-1",
      tiny.error_of(callbacks.StochasticWeightAveraging, { swa_lrs = -1 }))
    assert.matches("must be an epoch %(from 0%) or a fraction from 0.0 to 1.0: got 1.5",
      tiny.error_of(callbacks.StochasticWeightAveraging, { swa_lrs = 1, swa_epoch_start = 1.5 }))
    local t = trainer(callbacks.StochasticWeightAveraging { swa_lrs = { 0.1, 0.2 } })
    assert.matches("2 learning rates for 1 groups of parameters",
      tiny.error_of(t.fit, t, tiny.Line(), tiny.same(1)))
    t = trainer(callbacks.StochasticWeightAveraging { swa_lrs = 0.1 }, { max_epochs = -1 })
    assert.matches("swa_epoch_start = 0.8 needs max_epochs",
      tiny.error_of(t.fit, t, tiny.Line(), tiny.same(1)))
  end)
end)
