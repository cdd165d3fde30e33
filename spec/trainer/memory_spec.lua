-- spec/trainer/memory_spec.lua: a fit holds no more memory after many batches than after a few.
-- tags: slow
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local DEVICE <const> = lt.ones(1).device

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
  c.runtime.collect_fully()
  c.runtime.reset_peak_memory()
  local before = c.runtime.memory(DEVICE).live_bytes
  tiny.trainer({ val_check_interval = 20, num_sanity_val_steps = 0 }):fit(net, batches(count),
    batches(3))
  return c.runtime.memory(DEVICE).peak_bytes - before
end

describe("the memory of a fit", function()
  it("is that of one batch", function()
    peak(20)
    local few, many = peak(20), peak(200)
    assert.is_true(many <= 1.2 * few,
      ("%d after 20 batches, %d after 200"):format(few, many))
  end)
end)

-- Bytes of Lua's heap, structs and tensors.
local function held()
  local m = c.runtime.memory()
  return m.lua_bytes + m.struct_bytes + m.live_bytes
end

local SAMPLES <const> = 50000 -- an order of 400 KB each epoch
local SLACK <const> = (4 << 20) + (1 << 16) -- and what the streams of a device hold

-- Two steps an epoch on a shuffled loader, validation, values of both, a checkpoint now and then.
-- `watch(epoch)` is called at the end of each.
local function train(epochs, watch)
  local net, folder = tiny.Line(), tiny.folder()
  function net:training_step(batch)
    local loss = self:loss(batch[1])
    for i = 1, 20 do self:log("loss" .. i, loss, { on_epoch = true, on_step = true }) end
    return loss
  end
  function net:validation_step(batch) self:log("val_loss", self:loss(batch[1])) end
  function net:on_train_epoch_end() watch(self.trainer.current_epoch) end
  local rows = lt.data.TensorDataset(lt.ones({ SAMPLES, 1 }, { device = "cpu" }))
  local loader = lt.data.DataLoader(rows, { batch_size = SAMPLES // 2, shuffle = true })
  local trainer = lt.Trainer {
    max_epochs = epochs, default_root_dir = folder, enable_progress_bar = false,
    enable_model_summary = false, log_every_n_steps = 1, num_sanity_val_steps = 0,
    callbacks = { lt.callbacks.ModelCheckpoint { every_n_epochs = 10 } },
  }
  trainer:fit(net, loader, lt.data.DataLoader(rows, { batch_size = SAMPLES }))
  os.execute("rm -r " .. folder)
end

-- Lua's table of strings doubles (64 KiB) when there are more than its size: have it do so before.
local function grow_string_table()
  local strings = {}
  for i = 1, 6000 do strings[i] = "string " .. i end
  return strings
end

describe("what a long fit holds", function()
  before_each(grow_string_table)

  it("is after 90 epochs what it was after 10, but for names and a step's values", function()
    local at = {}
    train(93, function(epoch)
      local tens = epoch // 10 -- the least of three: a device may have a step's values yet
      if tens % 4 ~= 1 or epoch % 10 > 2 then return end
      c.runtime.collect_fully()
      c.runtime.collect_fully() -- what finalizers of the first round let go
      at[tens] = math.min(at[tens] or math.huge, held())
    end)
    -- A hundred bytes an epoch: less than what one value of its forty holds, and one step's values.
    assert.is_true(at[9] - at[1] <= 8192, ("%d, %d, %d"):format(at[1], at[5], at[9]))
  end)

  it("stays below twice what is alive + 4 MiB without being asked", function()
    c.runtime.collect_fully()
    local before, most = nil, 0
    train(40, function(epoch)
      if epoch == 1 then
        c.runtime.collect_fully()
        before = held()
      end
      most = math.max(most, held())
    end)
    local limit = 2 * before + SLACK + SAMPLES * 8
    assert.is_true(most <= limit, ("%d bytes at most, %d allowed"):format(most, limit))
    assert.is_true(40 * SAMPLES * 8 > limit) -- what its orders alone would come to
  end)
end)
