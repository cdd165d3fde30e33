-- spec/trainer/after_step_spec.lua: on_after_optimizer_step, the hook in which weights are changed.
local lt = require "ltrain"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

-- Fits `net`; returns what the hook saw: "step optimizer weight" of each call.
local function calls_of(net, batches, options)
  local seen = {}
  function net:on_after_optimizer_step(optimizer)
    for k, known in ipairs(self.trainer.optimizers) do
      if rawequal(known, optimizer) then
        seen[#seen + 1] = ("%d %d %.4f"):format(self.trainer.global_step, k, self.w:item())
      end
    end
  end
  tiny.trainer(options):fit(net, batches)
  return seen
end

describe("on_after_optimizer_step", function()
  it("runs when an optimizer has stepped, and the step is counted", function()
    -- w' = w - 0.1 * 2 (w - 2) * 2.5: the distance from 2 halves
    assert.same({ "1 1 1.2500", "2 1 1.6250" }, calls_of(tiny.Line(), tiny.same(2)))
  end)

  it("runs once a window of accumulate_grad_batches", function()
    assert.same({ "1 1 1.2500", "2 1 1.6250" },
      calls_of(tiny.Line(), tiny.same(3), { accumulate_grad_batches = 2 }))
  end)

  it("runs on callbacks, before the module", function()
    local order = {}
    local callback, net = lt.Callback(), tiny.Line()
    function callback.on_after_optimizer_step(_, trainer, module, optimizer)
      assert.equal(net, module)
      assert.equal(trainer.optimizers[1], optimizer)
      order[#order + 1] = "callback"
    end
    function net.on_after_optimizer_step() order[#order + 1] = "module" end
    tiny.trainer({ callbacks = { callback } }):fit(net, tiny.same(1))
    assert.same({ "callback", "module" }, order)
  end)

  it("does not run for steps that are not taken", function()
    local net = tiny.Line()
    function net:training_step(x, batch_idx)
      if batch_idx == 1 then return nil end
      return self:loss(x) * (batch_idx == 2 and math.huge or 1.0)
    end
    assert.same({ "1 1 1.2500" }, calls_of(net, tiny.same(3), { nonfinite = "skip" }))
  end)

  it("runs once where the closure is called twice", function()
    local net = tiny.Line()
    function net:optimizer_step(_, _, optimizer, closure)
      closure()
      closure()
      optimizer:step()
    end
    assert.same({ "1 1 1.2500" }, calls_of(net, tiny.same(1)))
  end)

  it("runs for each optimizer of manual optimization", function()
    local net = tiny.Line()
    net.automatic_optimization = false
    function net:configure_optimizers()
      return { lt.optim.SGD(self:parameters(), { lr = 0.1 }),
        lt.optim.SGD(self:parameters(), { lr = 0.2 }) }
    end
    function net:training_step(x)
      for _, optimizer in ipairs(self:optimizers()) do
        optimizer:zero_grad()
        self:manual_backward(self:loss(x))
        optimizer:step()
      end
    end
    assert.same({ "1 1 1.2500", "2 2 2.0000" }, calls_of(net, tiny.same(1)))
  end)

  it("may change the weights, without a warning and without lt.allow_update", function()
    local net, said = tiny.Line(), {}
    function net:on_after_optimizer_step() self.w:mul_(0.5) end
    local trainer = tiny.trainer()
    function trainer.say(_, text) said[#said + 1] = text end
    trainer:fit(net, tiny.same(3))
    local w = 0.5
    for _ = 1, 3 do w = (w - 0.1 * 2 * (w - 2) * 2.5) * 0.5 end
    assert.near(w, net.w:item(), 1e-6)
    assert.same({}, said)
  end)
end)

-- Weight clipping and a mean of the weights in a deep net: 9 samples in batches of 4, of which in
-- the last step one of two ranks has none. Prints calls and mean of each rank, then the weights.
local DEEP <const> = [[
  lt.seed(5)
  local nn = lt.nn
  local net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
  net:to "f64"
  local calls, mean = 0, 0.0
  local function sum(f)
    local total = 0
    for _, p in ipairs(net:parameters()) do total = total + f(p:detach()):sum():item() end
    return total
  end
  function net:training_step(batch) return (self(batch[1]) - 2):square():mean() end
  function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.5}) end
  function net:on_after_optimizer_step(optimizer)
    calls = calls + 1
    for _, parameter in ipairs(self:parameters()) do parameter:clamp_(-0.3, 0.3) end
    mean = 0.9 * mean + 0.1 * sum(function(p) return p * p end)
  end
  function net:on_train_end()
    local all = lt.dist.all_gather({calls, mean})
    if not self.trainer.is_global_zero then return end
    for _, one in ipairs(all) do print(("%%d %%.10f"):format(one[1], one[2])) end
  end
  local x = lt.randn(9, 3, {dtype = "f64"})
  lt.Trainer{devices = %d, max_epochs = 2, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false, replica_check_every_n_steps = 1,
  }:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x), {global_batch_size = 4}))
  print(("%%.10f"):format(sum(function(p) return p * p * p end)))
  print(sum(function(p) return p:abs():gt(0.3):to "f64" end))
]]

describe("on_after_optimizer_step on several ranks", function()
  it("runs on each in every step, also without a sample, as on one rank", function()
    local function lines(ranks)
      local list = {}
      for line in support.passes(DEEP:format(ranks)):gmatch("[^\n]+") do
        if line:find "^%-?[%d. ]+$" then list[#list + 1] = line end
      end
      return list
    end
    local one, two = lines(1), lines(2)
    assert.equal("6 ", one[1]:sub(1, 2))
    assert.same({ one[1], one[1], one[2], "0.0" }, two)
    assert.equal("0.0", one[3])
  end)
end)
