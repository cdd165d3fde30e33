-- spec/trainer/deferred_spec.lua: gradients that are not finite on an asynchronous device: it
-- leaves the step out, the host hears of it a step later and says the same as on the CPU.
-- tags: threads
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local SQRT <const> = 17 -- the line of sqrt below

-- A line whose loss is finite and whose gradient is NaN in batch `bad`.
local function broken(bad, optimizer)
  local net = tiny.Line()
  function net:training_step(x, batch_idx)
    local y = self(x)
    local loss = self:loss(x)
    if batch_idx ~= bad then return loss end
    local zero = y * 0
    local root = zero:sqrt()
    return loss + root:mean()
  end
  function net:configure_optimizers() return optimizer(self:parameters(), { lr = 0.01 }) end
  return net
end

-- Fits on four batches; the message of its error, the weight at the end, the trainer.
local function fit(device, net, options, val)
  local o = { strategy = lt.strategies.SingleDevice { device = device } }
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  local ok, message = pcall(trainer.fit, trainer, net, tiny.same(4), val)
  return not ok and tostring(message), net.w:item(), trainer
end

local function momentum(parameters)
  return lt.optim.SGD(parameters, { lr = 0.01, momentum = 0.9 })
end

describe("a step whose gradients are not finite, on an asynchronous device,", function()
  for name, optimizer in pairs { SGD = lt.optim.SGD, momentum = momentum, Adam = lt.optim.Adam,
    AdamW = lt.optim.AdamW } do
    it("is not taken, and its batch is named: " .. name, function()
      for bad = 0, 3 do -- the last one is found at the epoch's end
        local expected, weight = fit("cpu", broken(bad, optimizer))
        local message, found, trainer = fit("fake:0", broken(bad, optimizer))
        assert.equal(expected, message)
        assert.matches(("batch %d, step %d): the derivative of sqrt at "):format(bad, bad), message,
          1, true)
        assert.matches(("deferred_spec.lua:%d made the first inf"):format(SQRT), message, 1, true)
        assert.equal(weight, found)
        assert.equal(bad, trainer.global_step)
      end
    end)
  end

  it("is heard of a few steps later, and the host waits for none of them", function()
    local waits, last = {}, nil
    local net = broken(6, lt.optim.Adam)
    local step = net.training_step
    function net:training_step(x, batch_idx)
      waits[batch_idx], last = require("ltrain.c").runtime.fake_counts().waits, batch_idx
      return step(self, x, batch_idx)
    end
    local trainer = tiny.trainer { strategy = lt.strategies.SingleDevice { device = "fake:0" } }
    local ok, message = pcall(trainer.fit, trainer, net, tiny.same(20))
    assert.is_false(ok)
    assert.matches("(epoch 0, batch 6, step 6): the derivative of sqrt", message, 1, true)
    assert.equal(6, trainer.global_step)
    assert.equal(6, last) -- the batch that ran again
    assert.equal(waits[1], waits[5])
    assert.is_nil(waits[12])
  end)

  it("is in no file that is asked for afterwards", function()
    local net, path = broken(2, lt.optim.SGD), tiny.folder() .. "/late.ckpt"
    local message, _, trainer = fit("fake:0", net)
    assert.matches("batch 2, step 2", message, 1, true)
    local refusal = tiny.error_of(trainer.save_checkpoint, trainer, path)
    assert.matches("save_checkpoint: ", refusal, 1, true)
    assert.is_nil(io.open(path))
  end)

  it("is told for a loss that is shown, before the step", function()
    local function losing(bad)
      local net = tiny.Line { lr = 0.01 }
      function net:training_step(x, batch_idx)
        local loss = self:loss(x)
        local spoilt = batch_idx == bad and loss:detach():mul(0):log() or nil
        return spoilt and loss + spoilt or loss
      end
      return net
    end
    local expected, weight = fit("cpu", losing(1), { log_every_n_steps = 1 })
    local message, found, trainer = fit("fake:0", losing(1), { log_every_n_steps = 1 })
    assert.matches("training_step: the loss is -inf (epoch 0, batch 1, step 1)", expected, 1, true)
    assert.equal(expected:match "training_step: .*", message:match "training_step: .*")
    assert.equal(weight, found)
    assert.equal(1, trainer.global_step)
  end)

  it("is heard of before a validation", function()
    local net, validated = broken(1, lt.optim.SGD), 0
    function net:validation_step() validated = validated + 1 end
    local message = fit("fake:0", net, { val_check_interval = 2, num_sanity_val_steps = 0 },
      tiny.same(1))
    assert.matches("batch 1, step 1", message, 1, true)
    assert.equal(0, validated)
  end)

  it("is in no file", function()
    local folder, net = tiny.folder(), broken(1, lt.optim.SGD)
    function net:on_train_batch_end(_, _, index)
      self.trainer:save_checkpoint(("%s/%d.ckpt"):format(folder, index))
    end
    local message = fit("fake:0", net)
    assert.matches("batch 1, step 1", message, 1, true)
    assert.truthy(io.open(folder .. "/0.ckpt"))
    assert.is_nil(io.open(folder .. "/1.ckpt"))
    os.execute("rm -r " .. folder)
  end)

  it("is left out and said with nonfinite = 'skip', and taken with 'allow'", function()
    local _, weight = fit("cpu", broken(1, lt.optim.SGD), { nonfinite = "skip" })
    local message, skipped, trainer = fit("fake:0", broken(1, lt.optim.SGD), { nonfinite = "skip" })
    assert.is_false(message)
    assert.equal(weight, skipped)
    assert.equal(3, trainer.global_step)
    local _, allowed = fit("fake:0", broken(1, lt.optim.SGD), { nonfinite = "allow" })
    assert.is_true(allowed ~= allowed)
  end)

  it("is asked for at once by an optimizer with an update of its own", function()
    local Own = lt.optim.SGD:extend "Own"
    function Own:update(group)
      for _, p in ipairs(group.params) do p:sub_(p.grad * group.lr) end
    end
    local expected, weight = fit("cpu", broken(2, Own))
    local message, found = fit("fake:0", broken(2, Own))
    assert.equal(expected, message)
    assert.equal(weight, found)
  end)
end)
