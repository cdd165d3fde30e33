-- spec/trainer/late_spec.lua: steps that a device leaves out, of which the Trainer hears some steps
-- later, leave nothing behind: weights, counters and rates are those of the steps that were taken.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local INF <const> = math.huge

-- Overflows next to each other, further apart than the host is ahead, first and last.
local PATTERNS <const> = {
  { 14, 0, 1, 7, 13 }, { 12, 2, 3, 4, 5, 6 }, { 9, 1, 3, 5, 8 }, { 10, 9 },
}

local OPTIMIZERS <const> = {
  SGD = { lr = 0.25, momentum = 0.5, dampening = 0.25 }, Adam = { lr = 0.125 },
  AdamW = { lr = 0.125, weight_decay = 0.25, amsgrad = true }, NAdam = { lr = 0.125 },
  RAdam = { lr = 0.125 }, RMSprop = { lr = 0.125, momentum = 0.5, centered = true },
}

local SCHEDULERS <const> = {
  none = false,
  StepLR = function(optimizer) return lt.optim.StepLR(optimizer, 2, { gamma = 0.75 }) end,
  OneCycleLR = function(optimizer)
    return lt.optim.OneCycleLR(optimizer, 0.25, { total_steps = 20 })
  end,
  SequentialLR = function(optimizer)
    local first = lt.optim.ConstantLR(optimizer, { factor = 0.5, total_iters = 3 })
    local second = lt.optim.ExponentialLR(optimizer, 0.75)
    return lt.optim.SequentialLR(optimizer, { first, second }, { 3 })
  end,
}

-- A line whose loss is infinite in the batches of the set `bad`.
local function line(bad, optimizer, scheduler)
  local net = tiny.Line()
  function net:training_step(x, batch_idx)
    local loss = self:loss(x)
    return bad[batch_idx] and loss * INF or loss
  end
  function net:configure_optimizers()
    local made = lt.optim[optimizer](self:parameters(), OPTIMIZERS[optimizer])
    if not scheduler then return made end
    return { optimizer = made, lr_scheduler = { scheduler = scheduler(made), interval = "step" } }
  end
  return net
end

local function fit(device, net, count, options)
  options = options or {}
  options.strategy = lt.strategies.SingleDevice { device = device }
  local trainer = tiny.trainer(options)
  trainer:fit(net, tiny.same(count))
  local optimizer = trainer.optimizers[1]
  return { weight = net.w:item(), step = trainer.global_step, lr = optimizer.param_groups[1].lr,
           state = lt.hash(optimizer:state_dict().state),
           rates = trainer.lr_scheduler_configs[1]
             and lt.hash(trainer.lr_scheduler_configs[1].scheduler:state_dict()) }
end

local function set_of(pattern)
  local set = {}
  for i = 2, #pattern do set[pattern[i]] = true end
  return set, #pattern - 1
end

local function silent(fn)
  local console = require "ltrain.core.console"
  local own, said = console.say, {}
  console.say = function(text) said[#said + 1] = text end
  local ok, message = pcall(fn)
  console.say = own
  assert(ok, message)
  return table.concat(said, "\n")
end


local here <const> = lt.zeros(1).device
local device <const> = here == "cpu" and "fake:0" or here

-- Another device, which may be slow, has the same Lua.
if here ~= "cpu" then
  PATTERNS[2], PATTERNS[3], PATTERNS[4] = nil, nil, nil
  for name in pairs { AdamW = 1, NAdam = 1, RAdam = 1, RMSprop = 1 } do OPTIMIZERS[name] = nil end
  SCHEDULERS.OneCycleLR, SCHEDULERS.SequentialLR = nil, nil
end

describe("nonfinite = 'skip' on an asynchronous device", function()
  for name in pairs(OPTIMIZERS) do
    for kind, scheduler in pairs(SCHEDULERS) do
      it(("leaves nothing of the steps left out: %s, scheduler %s"):format(name, kind), function()
        for _, pattern in ipairs(PATTERNS) do
          local bad, missing = set_of(pattern)
          local expected = fit(device, line({}, name, scheduler), pattern[1] - missing)
          local text = silent(function()
            local found = fit(device, line(bad, name, scheduler), pattern[1],
              { nonfinite = "skip" })
            assert.same(expected, found)
          end)
          assert.matches(("epoch 0: %d optimizer step"):format(missing), text)
        end
      end)
    end
  end

  it("is waited for after some steps, also with a scheduler of steps", function()
    local net, waits = line({ [3] = true, [6] = true }, "Adam", SCHEDULERS.StepLR), {}
    function net:on_train_batch_end(_, _, index)
      waits[index] = require("ltrain.c").runtime.fake_counts().waits
    end
    silent(function() fit("fake:0", net, 12, { nonfinite = "skip", gradient_clip_val = 1.0 }) end)
    assert.equal(waits[0], waits[3]) -- later it is far ahead: the fake device is in no hurry
    assert(waits[11] - waits[3] < 2 * 8, waits[11] - waits[3])
  end)

  it("logs at the steps that were taken, and saves there", function()
    local function rows(count, bad, at_once)
      local folder, steps, net = tiny.folder(), {}, line(bad, "Adam", SCHEDULERS.StepLR)
      if at_once then function net.on_after_optimizer_step() end end -- then the host waits
      local own = net.training_step
      function net:training_step(x, batch_idx)
        local loss = own(self, x, batch_idx)
        self:log("w", self.w:detach():sum())
        return loss
      end
      local logger = lt.Logger:extend "Rows"
      function logger:log_metrics(row, step) steps[#steps + 1] = { step, row.w, row.lr } end
      silent(function()
        fit(device, net, count, { nonfinite = "skip", log_every_n_steps = 3, logger = logger(),
          enable_checkpointing = true, callbacks = { lt.callbacks.LearningRateMonitor(),
            lt.callbacks.ModelCheckpoint { dirpath = folder, every_n_train_steps = 2,
              save_top_k = -1, filename = "{step}" } } })
      end)
      local files = require "ltrain.c".io.list_folder(folder)
      table.sort(files)
      os.execute("rm -r " .. folder)
      return { steps = steps, files = files }
    end
    local bad = { [1] = true, [2] = true, [6] = true, [7] = true }
    assert.same(rows(13, bad, true), rows(13, bad))
  end)

  it("stops at max_steps taken", function()
    local bad = { [0] = true, [3] = true, [4] = true }
    local expected = fit(device, line({}, "Adam"), 5)
    silent(function()
      local found = fit(device, line(bad, "Adam"), 12, { nonfinite = "skip", max_steps = 5 })
      assert.same(expected, found)
    end)
  end)
end)
