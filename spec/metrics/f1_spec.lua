-- spec/metrics/f1_spec.lua: F1 against values of scikit-learn 1.x (f1_score), written down here
-- with their inputs, and against counts made on paper.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local F1 <const> = lt.metrics.F1

-- The value of one update.
local function of(options, scores, labels)
  local metric = F1(options)
  metric:update(lt.tensor(scores), lt.tensor(labels))
  return metric:compute()
end

describe("F1 of two classes", function()
  it("is 2 tp / (2 tp + fp + fn)", function()
    -- tp 2, fp 1, fn 1
    assert.near(2 / 3, of(nil, { 0, 0, 1, 1, 0, 1 }, { 0, 1, 0, 1, 0, 1 }), 1e-12)
  end)

  it("compares scores with a threshold", function()
    local scores <const>, labels <const> = { 0.2, 0.4, 0.9, 0.6 }, { 0, 1, 1, 0 }
    assert.near(2 / 4, of(nil, scores, labels), 1e-12)
    assert.near(4 / 5, of({ threshold = 0.3 }, scores, labels), 1e-12)
  end)

  it("refuses logits that are not said to be, and takes them with from_logits or threshold = 0",
    function()
      local logits <const>, labels <const> = { 0.2, -3.0, 5.0, 0.7 }, { 1, 0, 1, 0 }
      assert.matches("metrics.F1: threshold = 0.5 is for probabilities: got scores from %-3 to 5; "
        .. "for logits give from_logits = true, or threshold = 0",
        tiny.error_of(of, nil, logits, labels))
      assert.near(4 / 5, of({ from_logits = true }, logits, labels), 1e-12)
      assert.near(4 / 5, of({ threshold = 0 }, logits, labels), 1e-12)
      assert.near(1.0, of({ from_logits = true, threshold = 0.9 }, { 3.0, 2.0 }, { 1, 0 }), 1e-12)
      assert.matches("with from_logits the threshold is a probability between 0 and 1: got 0",
        tiny.error_of(F1, { from_logits = true, threshold = 0 }))
    end)

  it("leaves out ignored labels", function()
    assert.near(2 / 3, of({ ignore_index = -1 }, { 1, 1, 1, 0 }, { 1, -1, 0, 0 }), 1e-12)
  end)

  it("is 0 when nobody said yes and nothing was", function()
    assert.equal(0, of(nil, { 0, 0 }, { 0, 0 }))
  end)
end)

describe("F1 of several classes", function()
  local labels <const> = { 0, 1, 2, 2, 1, 0, 3, 1, 2, 0 }
  local said <const> = { 0, 2, 2, 1, 1, 0, 1, 1, 2, 3 }

  it("has scikit-learn's averages", function()
    local wanted <const> = { micro = 0.6, macro = 0.5095238095238095,
      weighted = 0.6114285714285714 }
    for average, value in pairs(wanted) do
      assert.near(value, of({ num_classes = 4, average = average }, said, labels), 1e-12, average)
    end
    local each = of({ num_classes = 4, average = "none" }, said, labels):tolist()
    for i, value in ipairs { 0.8, 4 / 7, 2 / 3, 0 } do assert.near(value, each[i], 1e-12) end
  end)

  it("leaves a class that does not occur out of the macro mean, as torchmetrics does", function()
    assert.near(0.5095238095238095, of({ num_classes = 6, average = "macro" }, said, labels), 1e-12)
  end)

  it("takes the highest of scores [N, C], and [N, C, T]", function()
    local scores <const> = { { 0.1, 0.2, 0.7 }, { 0.1, 0.8, 0.1 }, { 0.9, 0.1, 0 },
      { 0, 0.6, 0.4 } }
    local o <const> = { num_classes = 3, average = "macro" }
    assert.near(7 / 9, of(o, scores, { 2, 1, 0, 0 }), 1e-12)
    local metric = F1(o)
    metric:update(lt.tensor { scores }:transpose(2, 3), lt.tensor { { 2, 1, 0, 0 } })
    assert.near(7 / 9, metric:compute(), 1e-12)
  end)

  it("leaves out ignored labels, which need not be classes", function()
    assert.near(7 / 9, of({ num_classes = 3, average = "macro", ignore_index = -100 },
      { 2, 1, 0, 1, 1 }, { 2, 1, 0, 0, -100 }), 1e-12)
  end)

  it("is nan without samples, which is reported once", function()
    local console = require "ltrain.core.console"
    local say, lines = console.say, {}
    console.say = function(text) lines[#lines + 1] = text end
    local metric = F1 { num_classes = 3, average = "macro" }
    local value = metric:compute()
    metric:compute()
    console.say = say
    assert.is_true(value ~= value)
    assert.same({ "warning: metrics.F1: there were no samples: the value is nan" }, lines)
  end)
end)

describe("F1 of several labels", function()
  local labels <const> = { { 1, 0, 1 }, { 0, 1, 0 }, { 1, 1, 0 }, { 0, 0, 1 } }
  local scores <const> = { { 0.9, 0, 0.1 }, { 0.2, 0.6, 0.7 }, { 0.8, 0.5, 0 }, { 0, 0.9, 0.6 } }

  it("has scikit-learn's averages", function()
    for _, average in ipairs { "micro", "macro", "weighted" } do
      assert.near(2 / 3, of({ num_labels = 3, average = average }, scores, labels), 1e-12, average)
    end
    assert.same({ 1, 0.5, 0.5 },
      of({ num_labels = 3, average = "none" }, scores, labels):tolist())
  end)
end)

describe("F1", function()
  it("is the same for any cut of the data", function()
    lt.seed(2)
    local said, labels = lt.randint(0, 4, { 50 }), lt.randint(0, 4, { 50 })
    local o <const> = { num_classes = 4, average = "weighted" }
    local whole, one, two = F1(o), F1(o), F1(o)
    whole:update(said, labels)
    one:update(said:narrow(1, 1, 7), labels:narrow(1, 1, 7))
    two:update(said:narrow(1, 8, 43), labels:narrow(1, 8, 43))
    one:merge(two)
    assert.equal(whole:compute(), one:compute())
  end)

  it("wants an average where there are several, and only there", function()
    assert.matches("metrics.F1: with num_classes or num_labels say how to average",
      tiny.error_of(F1, { num_classes = 3 }))
    assert.matches("average = 'micro' needs num_classes", tiny.error_of(F1, { average = "micro" }))
    assert.matches("exclude each other",
      tiny.error_of(F1, { num_classes = 3, num_labels = 3, average = "none" }))
  end)

  it("reports both shapes when they do not fit, and an id that is none", function()
    local two, four = F1(), F1 { num_classes = 4, average = "macro" }
    assert.matches("scores %[2%], labels %[3%]",
      tiny.error_of(two.update, two, lt.tensor { 1, 0 }, lt.tensor { 1, 0, 1 }))
    assert.matches("num_classes = 4: got scores %[2, 3%]",
      tiny.error_of(four.update, four, lt.zeros(2, 3), lt.tensor { 1, 0 }))
    assert.matches("labels are ids 0..3 %(num_classes = 4%): got 4",
      tiny.error_of(four.update, four, lt.tensor { 1, 0 }, lt.tensor { 4, 0 }))
  end)
end)
