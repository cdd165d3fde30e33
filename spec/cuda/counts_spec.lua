-- spec/cuda/counts_spec.lua: what a training step costs a GPU's host: launches, copies, waits, as
-- the fake runtime counts them.
local counts = require "spec.cuda.counts"
local both = require "spec.cuda.both"
local lt = require "ltrain"
local nets = require "spec.cuda.nets"
local nn = lt.nn

-- A host that is steps ahead of the device waits for it. Streams that are threads take real time:
-- only where work is done when it is asked for does no wait mean that none was needed.
local THREADS <const> = os.getenv "FAKERT" == "threads"

local function case(name, fn)
  if counts and not (THREADS and name:find "wait") then return both.it(name, fn) end
  pending(("%s (%s)"):format(name, counts and "the host gets ahead of streams that are threads"
    or "only the fake runtime counts"))
end

local Net <const> = lt.Module:extend "CountedNet"

function Net:init(layers, options)
  self.layers, self.logs, self.rows = layers, options.logs, {}
end

function Net:training_step(batch)
  local loss = nn.functional.cross_entropy(self.layers(batch[1]), batch[2]:flatten())
  if self.logs then
    self:log("loss", loss)
    self:log("double", loss * 2, { on_epoch = true })
  end
  return loss
end

function Net:on_train_batch_start() table.insert(self.rows, counts()) end

function Net:configure_optimizers()
  local optimizer = lt.optim.Adam(self:parameters(), { lr = 0.01 })
  local scheduler = lt.optim.StepLR(optimizer, 2, { gamma = 0.5 })
  return { optimizer = optimizer, lr_scheduler = { scheduler = scheduler, interval = "step" } }
end

-- The same in manual optimization, by an optimizer for each half of the parameters.
local Manual <const> = Net:extend "CountedManualNet"

function Manual:init(...)
  Manual.super.init(self, ...)
  self.automatic_optimization = false
end

function Manual:training_step(batch)
  for _, optimizer in ipairs(self:optimizers()) do
    local loss = nn.functional.cross_entropy(self.layers(batch[1]), batch[2]:flatten())
    optimizer:zero_grad()
    self:manual_backward(loss)
    optimizer:step()
  end
end

function Manual:configure_optimizers()
  local list, halves = self:parameters(), { {}, {} }
  for i, p in ipairs(list) do table.insert(halves[i <= #list // 2 and 1 or 2], p) end
  return { lt.optim.Adam(halves[1], { lr = 0.01 }), lt.optim.Adam(halves[2], { lr = 0.01 }) }
end

local BATCHES <const>, LOG_EVERY <const>, WARM <const> = 14, 6, 3

-- Fits on some batches of the CPU; what each step but the first ones took, and the losses.
local function steps(kind, options)
  lt.seed(5)
  local data, net = {}, (kind.manual and Manual or Net)(kind.layers(), options)
  for k = 1, BATCHES do
    data[k] = kind.batch()
    if options.pinned then
      for i, x in ipairs(data[k]) do data[k][i] = x:pin_memory() end
    end
  end
  local trainer = lt.Trainer {
    accelerator = "cuda", devices = 1, max_epochs = 1, logger = false,
    log_every_n_steps = LOG_EVERY, enable_checkpointing = false, enable_progress_bar = false,
    enable_model_summary = false, nonfinite = options.nonfinite, precision = options.precision,
    accumulate_grad_batches = options.window,
  }
  trainer:fit(net, data)
  -- rows[k + 1] is what batch k took, from 1 on.
  local rows = {}
  for k = WARM + 1, #net.rows - 1 do rows[k] = net.rows[k + 1] end
  return rows
end

local MOST_LAUNCHES <const> = { mlp = 38, cnn = 80, gpt = 110 }
local MOST_COPIES <const> = { mlp = 3, cnn = 3, gpt = 4 } -- the batch and a flag
local BYTES <const> = 2048 -- that a thread of the widest grid of an operation has at most

describe("a training step on cuda", function()
  case("launches a few kernels of enough threads, and neither copies nor waits", function()
    local net = nets.mlp.layers():to "cuda"
    local optimizer = lt.optim.Adam(net:parameters(), { lr = 0.01 })
    local x = lt.randn({ 32, 8 }, { device = "cuda" })
    local y = lt.randint(0, 4, { 32 }, { device = "cuda" })
    for k = 1, 4 do
      counts()
      optimizer:zero_grad()
      local loss = nn.functional.cross_entropy(net(x), y)
      loss:backward()
      optimizer:step()
      local c = counts()
      if k > 1 then
        assert.is_true(c.launches <= 26, c.launches .. " launches")
        assert.is_true(c.threads >= 32 * c.launches)
        assert.equal(0, c.copies)
        assert.equal(0, c.waits)
      end
    end
  end)

  for name, kind in pairs(nets) do
    for _, pinned in ipairs { false, true } do
      case(("of a %s that the Trainer fits waits for nothing: %s batches"):format(name,
        pinned and "pinned" or "pageable"), function()
        for k, row in pairs(steps(kind, { pinned = pinned })) do
          local at = ("batch %d: %%d %%s"):format(k)
          assert.is_true(row.launches <= MOST_LAUNCHES[name], at:format(row.launches, "launches"))
          assert.is_true(row.copies <= MOST_COPIES[name], at:format(row.copies, "copies"))
          assert.equal(0, row.waits, at:format(row.waits, "waits"))
          assert.is_true(row.bytes_a_thread <= BYTES,
            at:format(row.bytes_a_thread, "bytes a thread of " .. row.narrowest))
        end
      end)
    end

    -- The row is written when the second batch after it begins, before the hook that counts: it
    -- need not wait where the device has done all by then.
    case(("of a %s waits once at most two batches after values are logged"):format(name), function()
      for k, row in pairs(steps(kind, { logs = true })) do
        local shows, reads = k % LOG_EVERY == 0, (k - 1) % LOG_EVERY == 0
        assert.is_true(row.waits <= (reads and 1 or 0), ("batch %d: %d waits"):format(k, row.waits))
        assert.is_true(row.copies <= MOST_COPIES[name] + (shows and 2 or 0), -- each value
          ("%d copies"):format(row.copies))
      end
    end)
  end

  -- Whether the gradients were finite is on the device; a count of steps that is shown waits.
  for name, options in pairs { mlp = { nonfinite = "skip" }, cnn = { precision = "16-mixed" } } do
    local what, value = next(options)
    case(("of a %s waits for nothing with %s = '%s'"):format(name, what, value), function()
      for k, row in pairs(steps(nets[name], options)) do
        local at = ("batch %d: %%d %%s"):format(k)
        assert.is_true(row.launches <= MOST_LAUNCHES[name], at:format(row.launches, "launches"))
        assert.equal(k % LOG_EVERY == 0 and 1 or 0, row.waits, at:format(row.waits, "waits"))
      end
    end)
  end

  for name, options in pairs { mlp = {}, gpt = { nonfinite = "skip" },
    cnn = { precision = "16-mixed" } } do
    case(("of a %s in windows of 3 batches waits for nothing, %s"):format(name,
      next(options) or "nonfinite = 'stop'"), function()
      options.window = 3
      for k, row in pairs(steps(nets[name], options)) do
        local at = ("batch %d: %%d %%s"):format(k)
        assert.is_true(row.waits <= (k % (3 * LOG_EVERY) == 0 and 1 or 0),
          at:format(row.waits, "waits"))
      end
    end)
  end

  -- A GAN's way: two optimizers, each with gradients of its own.
  for _, options in ipairs { { nonfinite = "stop" }, { nonfinite = "skip" },
    { precision = "16-mixed" } } do
    local what, value = next(options)
    case(("of manual optimization with two optimizers waits for nothing, %s = '%s'"):format(what,
      value), function()
      for k, row in pairs(steps({ layers = nets.mlp.layers, batch = nets.mlp.batch,
        manual = true }, options)) do
        local at = ("batch %d: %%d %%s"):format(k)
        assert.is_true(row.launches <= 128, at:format(row.launches, "launches"))
        assert.is_true(row.waits <= (k % LOG_EVERY == 0 and 2 or 0), at:format(row.waits, "waits"))
      end
    end)
  end

  case("is fitted to the same weights as by itself on the CPU's batches", function()
    local weights = {}
    for i, pinned in ipairs { false, true } do
      lt.seed(5)
      local net, data = Net(nets.mlp.layers(), {}), {}
      for k = 1, BATCHES do data[k] = nets.mlp.batch() end
      for _, batch in ipairs(pinned and data or {}) do
        for i2, x in ipairs(batch) do batch[i2] = x:pin_memory() end
      end
      lt.Trainer { accelerator = "cuda", devices = 1, max_epochs = 1, logger = false,
        enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
      }:fit(net, data)
      weights[i] = net.layers[1].weight:detach():to "cpu"
    end
    both.same(weights[2], weights[1], "weights")
  end)

  case("narrow grids are told", function()
    local x = lt.randn({ 64, 1024 }, { device = "cuda" })
    counts()
    local y = x:relu()
    local c = counts()
    assert.equal("relu", c.narrowest)
    assert.is_true(c.bytes_a_thread > 0 and c.bytes_a_thread <= BYTES)
    assert.equal(64, y:size(1))
  end)
end)
