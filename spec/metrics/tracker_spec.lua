-- spec/metrics/tracker_spec.lua: MinMaxMetric, MetricTracker, higher_is_better. Values are those of
-- torchmetrics 1.9 for the same batches.
local cases = require "spec.metrics.cases"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local m <const> = lt.metrics

local function updated(metric, ...)
  for _, value in ipairs { ... } do metric:update(value) end
  return metric
end

describe("higher_is_better", function()
  -- Theirs is not set, though more is better.
  local UNSET <const> = { MeanAveragePrecision = true, Specificity = true }

  it("is torchmetrics' of every metric that is recorded", function()
    for _, name in ipairs(cases.names) do
      local want
      for _, case in ipairs(cases.by_metric[name]) do
        if case.higher_is_better ~= nil then want = case.higher_is_better end
      end
      if UNSET[name] or name == "WordInfoPreserved" then -- theirs is false, though 1 is the best
        want = true
      end
      assert.equal(want, m[name].higher_is_better, name)
    end
  end)

  it("is that of the metric inside", function()
    assert.is_true(m.Running(m.F1()).higher_is_better)
    assert.is_false(m.MinMaxMetric(m.MeanSquaredError()).higher_is_better)
    assert.is_nil(m.RunningMean().higher_is_better)
  end)
end)

describe("MinMaxMetric", function()
  it("has the least and the greatest value computed, over resets too", function()
    local metric = m.MinMaxMetric(m.Mean())
    assert.same({ raw = 3.0, min = 3.0, max = 3.0 }, updated(metric, 3):compute())
    assert.same({ raw = 4.0, min = 3.0, max = 4.0 }, updated(metric, 5):compute())
    metric:reset()
    assert.same({ raw = 9.0, min = 3.0, max = 9.0 }, updated(metric, 9):compute())
  end)

  it("counts the values of batches that it computes", function()
    local metric = m.MinMaxMetric(m.Mean())
    assert.same({ raw = 1.0, min = 1.0, max = 1.0 }, metric(1))
    assert.same({ raw = 3.0, min = 1.0, max = 3.0 }, metric(3))
    assert.same({ raw = 2.0, min = 1.0, max = 3.0 }, metric:compute())
  end)

  it("saves, merges and joins", function()
    local a, b = m.MinMaxMetric(m.Mean()), m.MinMaxMetric(m.Mean())
    updated(a, 2):compute()
    updated(b, 6):compute()
    local loaded = m.MinMaxMetric(m.Mean())
    loaded:load_state_dict(a:state_dict())
    assert.same({ raw = 2.0, min = 2.0, max = 2.0 }, loaded:compute())
    assert.same({ raw = 4.0, min = 2.0, max = 6.0 }, loaded:figure_of { a:state_dict(),
      b:state_dict() })
    local joined = m.MinMaxMetric(m.Mean()):joined { a:state_dict(), b:state_dict() }
    assert.same({ 2.0, 6.0 }, { joined.min_val, joined.max_val })
    a:merge(b)
    assert.same({ raw = 4.0, min = 2.0, max = 6.0 }, a:compute())
  end)

  it("has the metric's name before its names where collections have several", function()
    local all = m.MetricCollection({ a = m.MinMaxMetric(m.MeanSquaredError()),
      b = m.MinMaxMetric(m.MeanSquaredError()), c = m.MeanSquaredError() }, { prefix = "v_" })
    all:update(lt.tensor { 1.0 }, lt.tensor { 3.0 })
    local want = { v_a_raw = 4.0, v_a_min = 4.0, v_a_max = 4.0, v_b_raw = 4.0, v_b_min = 4.0,
      v_b_max = 4.0, v_c = 4.0 }
    assert.same(want, all:compute())
    assert.same(want, all(lt.tensor { 1.0 }, lt.tensor { 3.0 }))
    for name in pairs(all:named_metrics()) do assert.truthy(want[name], name) end
    local one = m.MetricCollection({ m.MinMaxMetric(m.Mean()) }, { prefix = "v_" })
    one:update(1)
    assert.same({ v_raw = 1.0, v_min = 1.0, v_max = 1.0 }, one:compute())
  end)

  it("reports what does not fit", function()
    assert.matches("MinMaxMetric: the first argument must be a metric: got 3",
      error_of(m.MinMaxMetric, 3))
    local metric = m.MinMaxMetric(m.Recall { num_classes = 2, average = "none" })
    metric:update(lt.tensor { 0, 1 }, lt.tensor { 0, 1 })
    assert.matches("MinMaxMetric: Recall must compute a number: got a tensor %[2%]",
      error_of(metric.compute, metric))
    assert.matches("merge: a MinMaxMetric is needed: got an object of class Mean",
      error_of(metric.merge, metric, m.Mean()))
  end)
end)

-- Three steps of two batches each.
local BATCHES <const> = { { { 1, 2, 3 }, { 1, 2, 4 } }, { { 1, 2, 3 }, { 1.5, 2, 3 } },
  { { 0, 2, 3 }, { 1, 2, 4 } } }

local function tracked(metric, options)
  local tracker = m.MetricTracker(metric, options)
  for _, batch in ipairs(BATCHES) do
    tracker:increment()
    local x, y = lt.tensor(batch[1]):to "f32", lt.tensor(batch[2]):to "f32"
    tracker:update(x, y)
    tracker:update(x * 2, y)
  end
  return tracker
end

local function near(want, got)
  assert.equal(#want, #got)
  for k, value in ipairs(want) do assert.near(value, got[k]:item(), 1e-4) end
end

describe("MetricTracker", function()
  it("has the values of all steps, and the best", function()
    local tracker = tracked(m.MeanSquaredError())
    assert.equal(3, tracker.n_steps)
    assert.near(1.8333, tracker:compute(), 1e-4)
    near({ 1.6667, 2.25, 1.8333 }, tracker:compute_all())
    local best, step = tracker:best_metric { return_step = true }
    assert.near(1.6667, best, 1e-4)
    assert.equal(0, step)
    assert.equal(1, select("#", tracker:best_metric()))
    best, step = tracked(m.MeanSquaredError(), { maximize = true })
      :best_metric { return_step = true }
    assert.same({ 2.25, 1 }, { best, step })
  end)

  it("continues with a step after it has computed others", function()
    local tracker = m.MetricTracker(m.Mean(), { maximize = true })
    for k = 1, 3 do
      tracker:increment()
      updated(tracker, k)
    end
    for _ = 1, 2 do near({ 1, 2, 3 }, tracker:compute_all()) end
    assert.equal(7, tracker(7))
    near({ 1, 2, 5 }, tracker:compute_all())
    tracker:increment()
    updated(tracker, 4)
    near({ 1, 2, 5, 4 }, tracker:compute_all())
  end)

  it("has those of a collection by name", function()
    local tracker = tracked(m.MetricCollection { mse = m.MeanSquaredError(),
      ev = m.ExplainedVariance() })
    near({ 1.6667, 2.25, 1.8333 }, tracker:compute_all().mse)
    near({ 0.2143, -3, -0.1607 }, tracker:compute_all().ev)
    local best, step = tracker:best_metric { return_step = true }
    assert.near(1.6667, best.mse, 1e-4)
    assert.near(0.2143, best.ev, 1e-4)
    assert.same({ mse = 0, ev = 0 }, step)
    tracker = tracked(m.MetricCollection { mse = m.MeanSquaredError(), ev = m.ExplainedVariance() },
      { maximize = { mse = true } })
    step = select(2, tracker:best_metric { return_step = true })
    assert.same({ mse = 1, ev = 0 }, step)
  end)

  it("stacks the values of classes, and has the best of each by name", function()
    local function recall() return m.Recall { num_classes = 3, average = "none" } end
    local function run(tracker)
      for _, said in ipairs { { 0, 1, 2 }, { 0, 0, 2 } } do
        tracker:increment()
        tracker:update(lt.tensor(said), lt.tensor { 0, 1, 1 })
      end
      return tracker
    end
    local tracker = run(m.MetricTracker(recall()))
    assert.same({ { 1, 0.5, 0 }, { 1, 0, 0 } }, tracker:compute_all():tolist())
    assert.matches("best_metric: Recall must compute a number: got a tensor %[3%]",
      error_of(tracker.best_metric, tracker))
    tracker:reset()
    assert.same({ { 1, 0.5, 0 }, { 0, 0, 0 } }, tracker:compute_all():tolist())
    tracker:reset_all()
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, tracker:compute_all():tolist())
    assert.equal(2, tracker.n_steps)
    local named = run(m.MetricTracker(m.ClasswiseWrapper(recall())))
    assert.same({ recall_0 = 1, recall_1 = 0.5, recall_2 = 0 }, named:best_metric())
    local all = run(m.MetricTracker(m.MetricCollection { each = m.ClasswiseWrapper(recall()) }))
    assert.same({ recall_0 = 1, recall_1 = 0.5, recall_2 = 0 }, all:best_metric())
  end)

  it("has a NaN as the best, where there is one", function()
    local tracker = m.MetricTracker(m.Mean(), { maximize = false })
    for _, value in ipairs { 0.5, 0 / 0, 0.25 } do
      tracker:increment()
      if value == value then tracker:update(value) end
    end
    local best, step = tracker:best_metric { return_step = true }
    assert.is_true(best ~= best)
    assert.equal(1, step)
  end)

  it("saves, loads, joins and goes to devices", function()
    local a = tracked(m.MeanSquaredError())
    local b = m.MetricTracker(m.MeanSquaredError())
    b:load_state_dict(a:state_dict())
    near({ 1.6667, 2.25, 1.8333 }, b:compute_all())
    b:load_state_dict(a:joined { a:state_dict(), tracked(m.MeanSquaredError()):state_dict() })
    near({ 1.6667, 2.25, 1.8333 }, b:compute_all())
    near({ 1.6667, 2.25, 1.8333 }, tracked(m.MeanSquaredError():to "fake"):compute_all())
    local c = m.MetricTracker(m.MetricCollection { mse = m.MeanSquaredError() })
    local whole = tracked(m.MetricCollection { mse = m.MeanSquaredError() })
    c:load_state_dict(c:joined { whole:state_dict(), whole:state_dict() })
    near({ 1.6667, 2.25, 1.8333 }, c:compute_all().mse)
    assert.matches("ranks must call increment%(%) as often: 3 steps and 0",
      error_of(a.joined, a, { a:state_dict(), m.MetricTracker(m.Accuracy()):state_dict() }))
  end)

  it("reports what does not fit", function()
    assert.matches("MetricTracker: the first argument must be a metric or a MetricCollection: "
      .. "got 3", error_of(m.MetricTracker, 3))
    local tracker = m.MetricTracker(m.Mean())
    for _, name in ipairs { "update", "compute", "compute_all", "best_metric" } do
      assert.matches("MetricTracker: " .. name .. ": increment%(%) must be called before",
        error_of(tracker[name], tracker))
    end
    tracker:increment()
    assert.matches("MetricTracker: Mean has no higher_is_better: give maximize = true or false",
      error_of(tracker.best_metric, updated(tracker, 1)))
    assert.matches("maximize must be true or false: got 1",
      error_of(m.MetricTracker, m.Mean(), { maximize = 1 }))
    assert.matches("maximize.a must be true or false: got 1",
      error_of(m.MetricTracker, m.MetricCollection { a = m.Mean() }, { maximize = { a = 1 } }))
  end)
end)

describe("a run with a MinMaxMetric and a MetricTracker", function()
  local function trained(saved, ckpt_path)
    local net, options = tiny.Line(), { max_epochs = 3 }
    net.range, net.tracker = m.MinMaxMetric(m.Mean()), m.MetricTracker(m.Mean(),
      { maximize = true })
    function net:on_train_epoch_start() self.tracker:increment() end
    function net:training_step(x, i)
      local value = i * (3 - self.trainer.current_epoch)
      self.range:update(value)
      self.tracker:update(value)
      if self.global_step == 5 and saved then self.trainer:request_checkpoint(saved) end
      self:log_dict(self.range, { on_step = false, on_epoch = true })
      return self:loss(x)
    end
    function net:on_train_epoch_end() self:log("best", self.tracker:best_metric()) end
    options.logger, options.enable_progress_bar = false, false
    options.enable_model_summary, options.default_root_dir = false, tiny.folder()
    options.enable_checkpointing = false
    local t = lt.Trainer(options)
    t:fit(net, tiny.batches({ 1 }, { 2 }, { 3 }, { 4 }), { ckpt_path = ckpt_path })
    return t, net
  end

  it("logs both over epochs", function()
    local t, net = trained()
    near({ 4.5, 3, 1.5 }, net.tracker:compute_all())
    local got = t.callback_metrics
    assert.same({ 1.5, 1.5, 4.5, 4.5 }, { got.raw, got.min, got.max, got.best })
  end)

  it("continues with both where it is resumed in mid-epoch", function()
    local path = tiny.folder() .. "/cut.ckpt"
    trained(path)
    local t, net = trained(nil, path)
    near({ 4.5, 3, 1.5 }, net.tracker:compute_all())
    local got = t.callback_metrics
    assert.same({ 1.5, 1.5, 4.5, 4.5 }, { got.raw, got.min, got.max, got.best })
  end)

  it("refuses to log a tracker itself", function()
    local function refused(log)
      local net = tiny.Line()
      function net:training_step() log(self, m.MetricTracker(m.Mean())) end
      local t = lt.Trainer { logger = false, enable_progress_bar = false, max_steps = 1,
        enable_model_summary = false, enable_checkpointing = false }
      return error_of(t.fit, t, net, tiny.batches { 1 })
    end
    assert.matches("log: 'acc' needs a number, a tensor of one element or a metric: got an object "
      .. "of class MetricTracker", refused(function(net, metric) net:log("acc", metric) end))
    assert.matches("log_dict: a table of names and values is needed: got an object of class "
      .. "MetricTracker", refused(function(net, metric) net:log_dict(metric) end))
  end)
end)
