-- spec/callbacks/watching_spec.lua: callbacks that only look: rates, time, summary.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"
local written = require "spec.callbacks.written"

local Rows = lt.Logger:extend("Rows")
function Rows:init() self.rows = {} end
function Rows:log_metrics(metrics, step)
  metrics.step = step
  self.rows[#self.rows + 1] = metrics
end

describe("LearningRateMonitor", function()
  -- The rates that are logged, in order.
  local function rates(options, interval, name)
    local net, logger = tiny.Line(), Rows()
    function net:configure_optimizers()
      local optimizer = lt.optim.SGD(self:parameters(), { lr = 1.0, momentum = 0.5 })
      return { optimizer }, { { scheduler = lt.optim.StepLR(optimizer, 1, { gamma = 0.5 }),
        interval = interval } }
    end
    tiny.trainer({ logger = logger, log_every_n_steps = 1, max_epochs = 2,
      callbacks = { lt.callbacks.LearningRateMonitor(options) } }):fit(net, tiny.same(2))
    local list = {}
    for _, row in ipairs(logger.rows) do list[#list + 1] = row[name or "lr-SGD"] end
    return list
  end

  it("logs at the interval of the scheduler, or at its own", function()
    assert.same({ 1.0, 0.5, 0.25, 0.125 }, rates({}, "step"))
    assert.same({ 1.0, 0.5 }, rates({}, "epoch"))
    assert.same({ 1.0, 1.0, 0.5, 0.5 }, rates({ logging_interval = "step" }, "epoch"))
    assert.same({ 0.5, 0.5 }, rates({ log_momentum = true }, "epoch", "lr-SGD-momentum"))
  end)

  it("names groups by their own names", function()
    local function names(...)
      local net, logger, groups = tiny.Line(), Rows(), {}
      for i, name in ipairs { ... } do
        groups[i] = { params = { i == 1 and net.w or lt.parameter(lt.zeros(1)) },
          name = name or nil }
      end
      function net.configure_optimizers() return lt.optim.SGD(groups, { lr = 1.0 }) end
      tiny.trainer({ logger = logger, log_every_n_steps = 1,
        callbacks = { lt.callbacks.LearningRateMonitor() } }):fit(net, tiny.same(1))
      local list = {}
      for name in pairs(logger.rows[1]) do list[#list + 1] = name:match "^lr.*" end
      table.sort(list)
      return table.concat(list, " ")
    end
    assert.equal("lr-SGD/body lr-SGD/head", names("body", "head"))
    assert.equal("lr-SGD/head lr-SGD/pg1", names(false, "head"))
    assert.equal("lr-SGD/head", names "head")
    assert.equal("lr-SGD", names(false))
    assert.matches("LearningRateMonitor: groups 1 and 2 of SGD have the same name: 'a'",
      tiny.error_of(names, "a", "a"))
  end)

  it("needs a logger", function()
    assert.matches("there is no logger", tiny.error_of(function()
      tiny.trainer({ callbacks = { lt.callbacks.LearningRateMonitor() } }):fit(tiny.Line(),
        tiny.same(1))
    end))
  end)
end)

describe("Timer", function()
  it("ends the fit when time is up; max_time makes one", function()
    local trainer = tiny.trainer { max_time = 0.0 }
    trainer:fit(tiny.Line(), tiny.same(3))
    assert.equal(1, trainer.global_step)
    local timer = lt.callbacks.Timer { duration = 100 }
    tiny.trainer({ callbacks = { timer } }):fit(tiny.Line(), tiny.same(1))
    assert.is_true(timer:time_elapsed() > 0 and timer:time_remaining() < 100)
  end)

  it("reads DD:HH:MM:SS, and tables of units", function()
    for _, case in ipairs { { "01:02:03:04", 93784 }, { 90, 90 }, { { hours = 1 }, 3600 },
      { { weeks = 1, days = 1, minutes = 1.5, seconds = 2 }, 691292 } } do
      local trainer = tiny.trainer { max_time = case[1] }
      assert.equal(case[2], trainer.callbacks[1].duration)
      assert.equal(case[2], lt.callbacks.Timer({ duration = case[1] }).duration)
      assert.equal(case[2], lt.callbacks.Timer(case[1]).duration)
    end
  end)

  it("refuses what is not a time", function()
    for _, case in ipairs {
      { { hour = 1 }, "has no unit 'hour'; did you mean 'hours'?" },
      { {}, "must be 'DD:HH:MM:SS', seconds, .* or a table of weeks, .* got an empty table" },
      { { hours = "1" }, "needs a number of hours: got '1'" },
      { { hours = -1 }, "must be at least 0 seconds: got %-3600" },
      { -1, "must be at least 0 seconds: got %-1" },
      { 0 / 0, "must be at least 0 seconds: got nan" },
      { "12:00", "must be 'DD:HH:MM:SS', .* got '12:00'" },
    } do
      assert.matches("Trainer: max_time " .. case[2], tiny.error_of(lt.Trainer,
        { max_time = case[1] }))
      assert.matches("callbacks.Timer: duration " .. case[2], tiny.error_of(lt.callbacks.Timer,
        { duration = case[1] }))
    end
  end)
end)

local ModelSummary <const> = lt.callbacks.ModelSummary

describe("ModelSummary", function()
  it("lists the layers and counts the parameters", function()
    local net = tiny.Line()
    net.body = lt.nn.Sequential(lt.nn.Dropout(0.1), lt.nn.ReLU())
    net.frozen = lt.nn.LayerNorm(1000):freeze()
    local text = written(nil, function()
      tiny.trainer({ enable_model_summary = true }):fit(net, tiny.same(1))
    end)
    assert.matches("| name   | type       | params | mode\n", text)
    assert.matches("0 | body   | Sequential | 0      | train\n", text)
    assert.matches("1 | frozen | LayerNorm  | 2.0 K  | eval\n", text)
    assert.matches("1        trainable\n2.0 K    frozen\n", text)
    assert.is_nil(text:find("Dropout", 1, true))
  end)

  it("has sizes and FLOPs of an example input", function()
    local net = lt.Module()
    net.body = lt.nn.Sequential(lt.nn.Conv2d(1, 4, 3, { padding = 1 }), lt.nn.ReLU(),
      lt.nn.Flatten())
    net.head = lt.nn.Linear(4 * 64, 10)
    net.unused = lt.nn.Identity()
    function net:forward(x)
      local y = self.body(x)
      return self.head(y)
    end
    -- As the summary of lightning 2.6 with max_depth = 2.
    assert.is_nil(ModelSummary.text(net, 2):find "FLOPs")
    net.example_input_array = lt.ones(2, 1, 8, 8)
    local text = ModelSummary.text(net, 2)
    for _, row in ipairs {
      "name   | type       | params | mode  | FLOPs  | in sizes     | out sizes\n",
      "body   | Sequential | 40     | train | 9.2 K  | [2, 1, 8, 8] | [2, 256]\n",
      "body.0 | Conv2d     | 40     | train | 9.2 K  | [2, 1, 8, 8] | [2, 4, 8, 8]\n",
      "body.1 | ReLU       | 0      | train | 0      | [2, 4, 8, 8] | [2, 4, 8, 8]\n",
      "body.2 | Flatten    | 0      | train | 0      | [2, 4, 8, 8] | [2, 256]\n",
      "head   | Linear     | 2.6 K  | train | 10.2 K | [2, 256]     | [2, 10]\n",
      "unused | Identity   | 0      | train | 0      | ?            | ?\n",
      "19.5 K   FLOPs of the example input\n",
    } do
      assert.truthy(text:find(row, 1, true), text)
    end
    assert.is_true(net.training)
  end)

  it("takes a list of arguments, and leaves the run as it would have been", function()
    local function fit(example)
      lt.seed(3)
      local net = lt.nn.Linear(3, 2)
      net.drop = lt.nn.Dropout(0.5)
      net.example_input_array = example
      function net:forward(x, factor)
        local y = self.drop(lt.nn.functional.linear(x, self.weight)) * (factor or 1)
        return y, factor
      end
      function net:training_step(x) return (self(x)):sum() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
      local text = written(nil, function()
        tiny.trainer({ enable_model_summary = true }):fit(net, { lt.ones(4, 3) })
      end)
      return text, lt.hash(net:state_dict())
    end
    local _, plain = fit()
    local text, with_example = fit { lt.ones(1, 3), lt.ones(1) }
    assert.equal(plain, with_example)
    assert.matches("12       FLOPs", text)
  end)
end)
