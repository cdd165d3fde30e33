-- spec/trainer/late_manual_spec.lua: steps that a device leaves out in manual optimization, of
-- several optimizers: the Trainer hears of them some steps later, and waits for none.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local here <const> = lt.zeros(1).device
local device <const> = here == "cpu" and "fake:0" or here

-- Two lines, each with an optimizer and a scheduler of its own; `bad[i]`: batches in which the loss
-- of optimizer i is finite and its gradient NaN. `each` (optional) is called in each batch.
local function two(bad, each)
  local net = tiny.Line()
  net.other = lt.parameter(lt.full({ 1 }, 3.0))
  net.automatic_optimization = false
  function net:configure_optimizers()
    local made, schedulers = {}, {}
    for i, p in ipairs { self.w, self.other } do
      made[i] = lt.optim.Adam({ p }, { lr = 0.125 })
      schedulers[i] = lt.optim.StepLR(made[i], 3, { gamma = 0.5 })
    end
    return made, schedulers
  end
  function net:training_step(x, batch_idx)
    if each then each(self, batch_idx) end
    local list = self:optimizers()
    for i, p in ipairs { self.w, self.other } do
      list[i]:zero_grad()
      local y = x * p
      local loss = (y - 1):square():mean()
      if bad[i][batch_idx] then
        local zero = y * 0
        loss = loss + zero:sqrt():mean()
      end
      self:manual_backward(loss)
      list[i]:step()
    end
    if batch_idx % 2 == 1 then
      for _, scheduler in ipairs(self:lr_schedulers()) do scheduler:step() end
    end
  end
  return net
end

local function quietly(fn)
  local console = require "ltrain.core.console"
  local own, said = console.say, {}
  console.say = function(text) said[#said + 1] = text end
  local ok, message = pcall(fn)
  console.say = own
  return ok, message, table.concat(said, "\n")
end

local function fit(at, net, count, options)
  local o = { strategy = lt.strategies.SingleDevice { device = at } }
  for name, value in pairs(options) do o[name] = value end
  local trainer = tiny.trainer(o)
  local ok, message, said = quietly(function() trainer:fit(net, tiny.same(count)) end)
  local one = { message = not ok and message or nil, said = said, step = trainer.global_step,
                batches = trainer.progress.stepped, weights = { net.w:item(), net.other:item() } }
  for i, optimizer in ipairs(trainer.optimizers) do
    local state = optimizer:state_dict()
    one[i] = { hash = lt.hash(state.state), lr = state.param_groups[1].lr }
  end
  return one
end

describe("manual optimization on an asynchronous device", function()
  local bad <const> = { { [0] = true, [3] = true, [4] = true, [9] = true },
                        { [3] = true, [7] = true, [8] = true } }

  it("leaves nothing of the steps left out, of any of its optimizers", function()
    local got = fit(device, two(bad), 10, { nonfinite = "skip" })
    assert.equal(20 - 7, got.step)
    assert.equal(10 - 1, got.batches) -- batch 3 has not stepped at all
    assert.matches("7 optimizer steps not taken", got.said)
    for i = 1, 2 do assert.equal(0.0625, got[i].lr) end
    if here ~= "cpu" then return end -- there each step is looked at before it is made
    local want = fit("cpu", two(bad), 10, { nonfinite = "skip" })
    assert.same({ want.step, want.batches, want.weights, want[1], want[2] },
      { got.step, got.batches, got.weights, got[1], got[2] })
  end)

  it("is settled where the script asks", function()
    local seen = {}
    fit(device, two(bad, function(net, index)
      seen[index] = net.trainer:settle_steps()
    end), 6, { nonfinite = "skip" })
    assert.same({ [0] = 0, 1, 3, 5, 5, 6 }, seen)
  end)

  for _, mode in ipairs { "skip", "stop" } do
    it(("waits for no step with nonfinite = '%s'"):format(mode), function()
      local waits = {}
      local net = two({ {}, {} }, function(_, index)
        waits[index] = require("ltrain.c").runtime.fake_counts().waits
      end)
      fit("fake:0", net, 20, { nonfinite = mode, log_every_n_steps = 100 })
      assert.equal(waits[0], waits[1]) -- later it is far ahead: the fake device is in no hurry
      assert(waits[19] - waits[1] <= 2 * 19 + 2, waits[19] - waits[1])
    end)
  end

  it("ends at the step whose gradients are not finite, and names it", function()
    for i = 1, 2 do
      local spoilt = { {}, {} }
      spoilt[i][2] = true
      local got = fit(device, two(spoilt), 6, {})
      assert.matches(("the gradients of %s are not finite (epoch 0, batch 2, step %d)"):format(
        i == 1 and "w" or "other", 3 + i), got.message, 1, true)
      assert.matches("the derivative of sqrt at spec/trainer/late_manual_spec.lua:%d+ made the",
        got.message)
      assert.equal(3 + i, got.step)
      if here == "cpu" then
        local want = fit("cpu", two(spoilt), 6, {})
        assert.same({ want.message, want.step, want.weights },
          { got.message, got.step, got.weights })
      end
    end
  end)
end)
