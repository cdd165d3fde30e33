-- spec/metrics/auroc_spec.lua: AUROC against the share of pairs in the right order (Mann-Whitney),
-- counted on paper, and against values of scikit-learn 1.x (roc_auc_score) with their inputs.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local AUROC <const> = lt.metrics.AUROC

local function of(options, scores, labels)
  local metric = AUROC(options)
  metric:update(lt.tensor(scores), lt.tensor(labels))
  return metric:compute()
end

-- Of all pairs of a right and a wrong one, the share in which the right one scores higher; equal
-- scores count half.
local function by_pairs(scores, labels)
  local won, pairs_seen = 0, 0
  for i, score in ipairs(scores) do
    for j, other in ipairs(scores) do
      if labels[i] == 1 and labels[j] == 0 then
        pairs_seen = pairs_seen + 1
        won = won + (score > other and 1 or score == other and 0.5 or 0)
      end
    end
  end
  return won / pairs_seen
end

describe("AUROC of two classes", function()
  local scores <const> = { 0.1, 0.4, 0.35, 0.8, 0.4, 0.7, 0.2, 0.9, 0.4, 0.6 }
  local labels <const> = { 0, 0, 1, 1, 1, 0, 0, 1, 0, 1 }

  it("is scikit-learn's", function()
    assert.near(0.76, of(nil, scores, labels), 1e-12)
    assert.near(1 / 2, of(nil, { 0.0, 0.5, 0.7, 0.8 }, { 0, 1, 1, 0 }), 1e-12)
  end)

  it("is the share of pairs in the right order, with many equal scores", function()
    lt.seed(5)
    for _, levels in ipairs { 2, 5, 1000 } do
      local x = lt.randint(0, levels, { 60 }):to "f32" / levels
      local y = lt.randint(0, 2, { 60 })
      assert.near(by_pairs(x:tolist(), y:tolist()), of(nil, x:tolist(), y:tolist()), 1e-12)
    end
  end)

  it("takes logits, any shape, and leaves out ignored labels", function()
    assert.near(3 / 4, of({ ignore_index = 2 }, { { -5.0, 9.0, 0.5 }, { 3.0, 7.0, 7.0 } },
      { { 0, 1, 2 }, { 1, 0, 2 } }), 1e-12)
  end)

  it("is nan where labels are all alike, which is reported once", function()
    local console = require "ltrain.core.console"
    local say, lines = console.say, {}
    console.say = function(text) lines[#lines + 1] = text end
    local metric = AUROC()
    assert.is_true(metric:compute() ~= metric:compute())
    metric:update(lt.tensor { 0.5, 0.2 }, lt.tensor { 1, 1 })
    local value = metric:compute()
    console.say = say
    assert.is_true(value ~= value)
    assert.equal(1, #lines)
    assert.matches("metrics.AUROC: there are no samples, or all labels are equal", lines[1])
  end)
end)

describe("AUROC with thresholds", function()
  it("counts scores between thresholds as equal", function()
    -- Known values: 5 thresholds.
    assert.near(1 / 2, of({ thresholds = 5 }, { 0.0, 0.5, 0.7, 0.8 }, { 0, 1, 1, 0 }), 1e-12)
    lt.seed(7)
    local x, y = lt.rand(200), lt.randint(0, 2, { 200 })
    local cut = (x * 10):floor() / 10 -- eleven thresholds, 0 to 1
    assert.near(by_pairs(cut:tolist(), y:tolist()),
      of({ thresholds = 11 }, x:tolist(), y:tolist()), 1e-12)
  end)

  it("counts scores of exactly 1 as any other", function()
    local labels = lt.tensor { 1, 0, 0, 1, 1, 0 }
    for _, scores in ipairs { { 1, 1, 0.2, 0.7, 1, 0.1 }, { 1, 1, 1, 1, 1, 1 } } do
      local x = lt.tensor(scores):to "f32"
      local exact, binned = lt.metrics.AUROC(), lt.metrics.AUROC { thresholds = 11 }
      exact:update(x, labels)
      binned:update(x, labels)
      assert.near(exact:compute(), binned:compute(), 1e-12)
    end
  end)

  it("makes probabilities of logits", function()
    local logits = lt.tensor { -3.0, 4, 0.5, -0.5 }
    local binned = lt.metrics.AUROC { thresholds = 100, from_logits = true }
    binned:update(logits, lt.tensor { 0, 1, 0, 1 })
    assert.near(3 / 4, binned:compute(), 1e-12)
    local x, ids = lt.tensor { { 2.0, 0 }, { 9, 8 }, { 0, 3 } }, lt.tensor { 0, 1, 1 }
    local options = { num_classes = 2, average = "none", from_logits = true }
    local each, shares = lt.metrics.AUROC(options), lt.metrics.AUROC(options)
    each:update(x, ids)
    shares.from_logits = false
    shares:update(x:softmax(2), ids)
    assert.same(shares:compute():tolist(), each:compute():tolist())
  end)

  it("puts a score that is a threshold above it, for any number of bins", function()
    for _, bins in ipairs { 2, 3, 8, 11, 50, 201 } do
      local grid = lt.arange(bins, { dtype = "f32" }) / (bins - 1)
      local metric = AUROC { thresholds = bins }
      metric:update(grid, lt.ones({ bins }, { dtype = "i64" }))
      assert.same(lt.ones({ 1, bins }, { dtype = "i64" }):tolist(),
        metric.right:narrow(2, 2, bins):tolist())
    end
  end)

  it("is near the exact value: half the share of pairs in one bin", function()
    lt.seed(8)
    local y = lt.randint(0, 2, { 2000 })
    local x = (lt.rand(2000) + y * 0.3) / 1.3
    local exact, binned = AUROC(), AUROC { thresholds = 200 }
    exact:update(x, y)
    binned:update(x, y)
    assert.near(exact:compute(), binned:compute(), 0.5 / 100)
    assert.near(by_pairs(x:tolist(), y:tolist()), exact:compute(), 1e-12)
  end)

  it("refuses scores outside 0 to 1", function()
    local metric = AUROC { thresholds = 10 }
    assert.matches("thresholds need scores from 0 to 1 .*: got %-1 to 3",
      tiny.error_of(metric.update, metric, lt.tensor { -1.0, 3.0 }, lt.tensor { 0, 1 }))
  end)
end)

describe("AUROC of several classes", function()
  local scores <const> = { { 0.7, 0.2, 0.1 }, { 0.2, 0.5, 0.3 }, { 0.1, 0.3, 0.6 },
    { 0.3, 0.3, 0.4 }, { 0.4, 0.5, 0.1 }, { 0.2, 0.2, 0.6 }, { 0.5, 0.2, 0.3 }, { 0.1, 0.6, 0.3 } }
  local labels <const> = { 0, 1, 2, 0, 1, 1, 0, 2 }

  it("compares each with all others: scikit-learn's averages", function()
    local function with(average) return { num_classes = 3, average = average } end
    assert.near(0.7472222222222222, of(with "macro", scores, labels), 1e-12)
    assert.near(0.7520833333333333, of(with "weighted", scores, labels), 1e-12)
    local each = of(with "none", scores, labels):tolist()
    for i, value in ipairs { 14 / 15, 0.6, 0.7083333333333334 } do
      assert.near(value, each[i], 1e-12)
    end
  end)

  it("has bins too", function()
    -- All scores are tenths, which are thresholds.
    assert.near(0.7472222222222222,
      of({ num_classes = 3, average = "macro", thresholds = 11 }, scores, labels), 1e-12)
  end)

  it("leaves a class that does not occur out of means, and says so", function()
    local console = require "ltrain.core.console"
    local say, lines = console.say, {}
    console.say = function(text) lines[#lines + 1] = text end
    local value = of({ num_classes = 3, average = "macro" }, { scores[1], scores[2] }, { 0, 1 })
    console.say = say
    assert.equal(1, value)
    assert.same({ "warning: metrics.AUROC: class 2: no row has this label, or all have: "
      .. "the class is ignored" },
      lines)
  end)

  it("and of several labels, each a column", function()
    local each = of({ num_labels = 2, average = "none" },
      { { 0.1, 0.9 }, { 0.4, 0.3 }, { 0.35, 0.2 } }, { { 0, 1 }, { 1, 0 }, { 1, 1 } }):tolist()
    assert.same({ 1, 0.5 }, each)
  end)
end)

describe("AUROC", function()
  it("reports what does not fit", function()
    local two, three = AUROC(), AUROC { num_classes = 3, average = "macro" }
    assert.matches("scores %[2%], labels %[3%]",
      tiny.error_of(two.update, two, lt.rand(2), lt.tensor { 1, 0, 1 }))
    assert.matches("scores must be floats: got i64",
      tiny.error_of(two.update, two, lt.tensor { 1, 0 }, lt.tensor { 1, 0 }))
    assert.matches("num_classes = 3: got scores %[2, 4%]",
      tiny.error_of(three.update, three, lt.rand(2, 4), lt.tensor { 1, 0 }))
  end)

  it("keeps its own copy of the scores", function()
    local metric, x = AUROC(), lt.tensor { 0.1, 0.9 }
    metric:update(x, lt.tensor { 0, 1 })
    x:fill_(0.5)
    assert.equal(1, metric:compute())
  end)
end)
