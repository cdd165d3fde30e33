-- spec/metrics/collection_spec.lua: MetricCollection, ClasswiseWrapper, Running.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local m <const> = lt.metrics

local said <const>, meant <const> = lt.tensor { 2, 1, 0, 1 }, lt.tensor { 2, 1, 0, 0 }

local function made()
  local o = { num_classes = 3, average = "macro" }
  return { precision = m.Precision(o), recall = m.Recall(o), f1 = m.F1(o),
    kappa = m.CohenKappa { num_classes = 3 }, acc = m.Accuracy() }
end

local function collection() return m.MetricCollection(made()) end

local function same(wanted, got)
  for name, value in pairs(wanted) do assert.near(value, got[name], 1e-12, name) end
end

-- Of the known answers: 3 of 4 right.
local WANTED <const> = { precision = 5 / 6, recall = 5 / 6, f1 = 7 / 9, kappa = 7 / 11,
  acc = 3 / 4 }

describe("MetricCollection", function()
  it("updates all, and computes a table", function()
    local all = collection()
    all:update(said, meant)
    same(WANTED, all:compute())
  end)

  it("counts once for metrics that count the same, after a reset too", function()
    local metrics, calls = made(), 0
    for _, name in ipairs { "precision", "recall", "f1" } do
      local update = metrics[name].update
      metrics[name].update = function(...)
        calls = calls + 1
        return update(...)
      end
    end
    local all = m.MetricCollection(metrics)
    for _ = 1, 2 do
      all:update(said, meant)
      all:update(said, meant)
      for _, metric in pairs(metrics) do metric:reset() end -- as a Trainer does
    end
    assert.equal(4, calls)
    all:update(said, meant)
    same(WANTED, all:compute())
  end)

  it("lets a metric that was updated alone continue alone", function()
    local metrics = made()
    local all = m.MetricCollection(metrics)
    metrics.recall:update(meant, meant)
    all:update(said, meant)
    local alone = m.Recall { num_classes = 3, average = "macro" }
    alone:update(meant, meant)
    alone:update(said, meant)
    same({ precision = 5 / 6, recall = alone:compute(), f1 = 7 / 9 }, all:compute())
  end)

  it("gives the values of one batch when called, and keeps the whole", function()
    local all = collection()
    all:update(meant, meant)
    same(WANTED, all(said, meant))
    local whole = collection()
    whole:update(meant, meant)
    whole:update(said, meant)
    same(whole:compute(), all:compute())
    same(WANTED, (function()
      all:reset()
      return all(said, meant)
    end)())
  end)

  it("names with prefix and postfix, lists by class, and holds collections", function()
    local inner = m.MetricCollection({ m.Accuracy() }, { prefix = "in_" })
    local all = m.MetricCollection({ x = m.Accuracy(), y = inner }, { postfix = "/val" })
    all:update(said, meant)
    assert.same({ ["x/val"] = 0.75, ["in_accuracy/val"] = 0.75 }, all:compute())
  end)

  it("keeps several results of a metric as a list", function()
    local all = m.MetricCollection { roc = m.ROC(), auroc = m.AUROC() }
    all:update(lt.tensor { 0.1, 0.9 }, lt.tensor { 0, 1 })
    local values = all:compute()
    assert.equal(1, values.auroc)
    assert.same({ 0, 0, 1 }, values.roc[1]:tolist())
    assert.equal(3, #values.roc)
  end)

  it("merges, saves and goes to devices", function()
    local a, b, whole = collection(), collection(), collection()
    a:update(said, meant)
    b:update(meant, meant)
    whole:update(said, meant)
    whole:update(meant, meant)
    a:merge(b)
    same(whole:compute(), a:compute())
    local loaded = collection()
    loaded:load_state_dict(a:state_dict())
    same(whole:compute(), loaded:compute())
    local there = collection():to "fake"
    there:update(said:to "fake", meant:to "fake")
    same(WANTED, there:compute())
  end)

  it("reports what is not a metric, and names that come twice", function()
    assert.matches("MetricCollection: 'x' must be a metric: got 3",
      error_of(m.MetricCollection, { x = 3 }))
    assert.matches("two metrics are called 'accuracy'",
      error_of(m.MetricCollection, { m.Accuracy(), m.Accuracy() }))
    assert.matches("a table of metrics is needed: got an object of class Accuracy",
      error_of(m.MetricCollection, m.Accuracy()))
    assert.matches("merge: a MetricCollection with 'acc' is needed",
      error_of(collection().merge, collection(), m.MetricCollection {}))
    assert.matches("the state of MetricCollection lacks 'acc'",
      error_of(collection().load_state_dict, collection(), {}))
    assert.matches("unknown option 'prefx'; did you mean 'prefix'",
      error_of(m.MetricCollection, {}, { prefx = "a" }))
  end)
end)

describe("ClasswiseWrapper", function()
  local function recall() return m.Recall { num_classes = 3, average = "none" } end

  it("gives each class's value a name", function()
    local by_class = m.ClasswiseWrapper(recall())
    by_class:update(said, meant)
    assert.same({ recall_0 = 0.5, recall_1 = 1.0, recall_2 = 1.0 }, by_class:compute())
    by_class = m.ClasswiseWrapper(recall(), { labels = { "a", "b", "c" }, prefix = "r-" })
    assert.same({ ["r-a"] = 0.5, ["r-b"] = 1.0, ["r-c"] = 1.0 }, by_class(said, meant))
  end)

  it("stands in collections", function()
    local all = m.MetricCollection { acc = m.Accuracy(), each = m.ClasswiseWrapper(recall()) }
    all:update(said, meant)
    assert.same({ acc = 0.75, recall_0 = 0.5, recall_1 = 1.0, recall_2 = 1.0 }, all:compute())
  end)

  it("merges and saves as its metric", function()
    local a, b = m.ClasswiseWrapper(recall()), m.ClasswiseWrapper(recall())
    a:update(said, meant)
    b:load_state_dict(a:state_dict())
    assert.same(a:compute(), b:compute())
    b:update(meant, meant)
    a:merge(b)
    assert.near(4 / 6, a:compute().recall_0, 1e-12)
    a:reset()
    assert.equal(0, a:compute().recall_0)
  end)

  it("reports what does not fit", function()
    assert.matches("the first argument must be a metric: got nil", error_of(m.ClasswiseWrapper))
    assert.matches("must have average = 'none': got 'macro'",
      error_of(m.ClasswiseWrapper, m.Recall { num_classes = 3, average = "macro" }))
    local few = m.ClasswiseWrapper(recall(), { labels = { "a" } })
    few:update(said, meant)
    assert.matches("there are 1 labels, and a class 1", error_of(few.compute, few))
    local one = m.ClasswiseWrapper(m.Accuracy())
    one:update(said, meant)
    assert.matches("Accuracy must compute a value for each class: got 0.75",
      error_of(one.compute, one))
  end)
end)

describe("Running", function()
  local function updated(metric, values)
    for _, value in ipairs(values) do metric:update(value) end
    return metric
  end

  it("is over the last updates", function()
    assert.equal(4, updated(m.RunningMean { window = 3 }, { 100, 1, 5, 6 }):compute())
    assert.equal(12, updated(m.RunningSum { window = 3 }, { 100, 1, 5, 6 }):compute())
    local recent = m.Running(m.Max(), { window = 2 })
    assert.equal(8, updated(recent, { 9, 3, 8 }):compute())
    assert.equal(1, recent(1))
    assert.equal(8, recent:compute())
  end)

  it("resets, saves, and joins the windows of ranks", function()
    local a = updated(m.RunningMean { window = 2 }, { 7, 1, 3 })
    local b = m.RunningMean { window = 2 }
    b:load_state_dict(a:state_dict())
    b:update(5)
    assert.same({ 2, 4 }, { a:compute(), b:compute() })
    assert.equal(3, a:figure_of { a:state_dict(), b:state_dict() })
    a:merge(b)
    assert.equal(4, a:compute())
    a:reset()
    assert.is_true(a:compute() ~= a:compute())
  end)

  it("reports what does not fit", function()
    assert.matches("Running: the first argument must be a metric: got 3", error_of(m.Running, 3))
    assert.matches("window must be at least 1: got 0", error_of(m.RunningMean, { window = 0 }))
  end)
end)
