-- spec/trainer/memory_spec.lua: a fit holds no more memory after many batches than after a few.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- Bytes of tensors at most during a fit of `count` batches of 64 KiB, validated every 20.
local function peak(count)
  local net = tiny.Line()
  function net:training_step(x)
    local loss = self:loss(x)
    self:log("loss", loss, { on_epoch = true })
    return loss
  end
  function net:validation_step(x) self:log("val_loss", self:loss(x)) end
  local function batches(n)
    local loader = { length = function() return n end }
    function loader.batches()
      return function() return lt.ones(16384) end
    end
    return loader
  end
  lt.runtime.collect_fully()
  lt.runtime.reset_peak_memory()
  local before = lt.runtime.memory().live_bytes
  tiny.trainer({ val_check_interval = 20, num_sanity_val_steps = 0 }):fit(net, batches(count),
    batches(3))
  return lt.runtime.memory().peak_bytes - before
end

describe("the memory of a fit", function()
  it("is that of one batch", function()
    peak(20)
    local few, many = peak(20), peak(200)
    assert.is_true(many <= 1.2 * few, ("%d after 20 batches, %d after 200"):format(few, many))
  end)
end)
