-- spec/metrics/metrics_spec.lua: Mean and Accuracy against counts made on paper.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local metrics <const> = lt.metrics

describe("Mean", function()
  it("is the mean of all elements, weighted", function()
    local mean = metrics.Mean()
    mean:update(lt.tensor { 1, 2, 3 })
    mean:update(6.0)
    assert.near(12 / 4, mean:compute(), 1e-12)
    mean:reset()
    mean:update(lt.tensor { 1.0, 3.0 }, lt.tensor { 3.0, 1.0 })
    mean:update(5.0, 2)
    assert.near((3 + 3 + 10) / 6, mean:compute(), 1e-12)
  end)

  it("counts past 2^24", function()
    local mean = metrics.Mean()
    mean:update(16777216.0, 1)
    mean:update(1.0, 1)
    assert.equal(16777217.0 / 2, mean:compute())
  end)

  it("is nan without data, and refuses text", function()
    local mean = metrics.Mean()
    assert.is_true(mean:compute() ~= mean:compute())
    assert.matches("needs a number or a tensor: got 'x'", tiny.error_of(mean.update, mean, "x"))
  end)
end)

describe("Accuracy without samples", function()
  local console = require "ltrain.core.console"
  local say = console.say
  after_each(function() console.say = say end)

  it("is nan that prints so, and is reported once", function()
    local lines = {}
    console.say = function(text) lines[#lines + 1] = text end
    local accuracy = metrics.Accuracy { ignore_index = 1 }
    accuracy:update(lt.tensor { { 0.1, 0.9 } }, lt.tensor { 1 })
    assert.equal("nan", tostring(accuracy:compute()))
    accuracy:compute()
    assert.same({ "warning: metrics.Accuracy: there were no samples: the value is nan" }, lines)
  end)
end)

describe("Accuracy", function()
  -- From the list of known answers: 3 of 4 right.
  local scores <const> = { { 0.1, 0.2, 0.7 }, { 0.1, 0.8, 0.1 }, { 0.9, 0.1, 0 }, { 0, 0.6, 0.4 } }
  local labels <const> = { 2, 1, 0, 0 }

  it("counts highest scores, or ids", function()
    local accuracy = metrics.Accuracy()
    accuracy:update(lt.tensor(scores), lt.tensor(labels))
    assert.equal(3 / 4, accuracy:compute())
    accuracy:reset()
    accuracy:update(lt.tensor { 2, 1, 0, 1 }, lt.tensor(labels))
    assert.equal(3 / 4, accuracy:compute())
  end)

  it("is the same for any cut of the data", function()
    local one, two = metrics.Accuracy(), metrics.Accuracy()
    one:update(lt.tensor { scores[1] }, lt.tensor { labels[1] })
    two:update(lt.tensor { scores[2], scores[3], scores[4] }, lt.tensor { 1, 0, 0 })
    one:merge(two)
    assert.equal(3 / 4, one:compute())
  end)

  it("takes the k highest", function()
    local accuracy = metrics.Accuracy { top_k = 2 }
    accuracy:update(lt.tensor { { 3.0, 2.0, 1.0 }, { 3.0, 2.0, 1.0 } }, lt.tensor { 1, 2 })
    assert.equal(1 / 2, accuracy:compute())
  end)

  it("leaves out ignored labels, and takes [N, C, T]", function()
    local accuracy = metrics.Accuracy { ignore_index = -100 }
    accuracy:update(lt.tensor { { { 1.0, 0.0 }, { 0.0, 1.0 } } }, lt.tensor { { 0, -100 } })
    assert.equal(1, accuracy:compute())
    assert.equal(1, accuracy.total)
  end)

  it("of two classes wants logits to be said", function()
    local logits, wanted = lt.tensor { -2.0, 3.0, 0.2, 0.4 }, lt.tensor { 0, 1, 1, 0 }
    local accuracy = metrics.Accuracy()
    assert.matches("Accuracy: threshold = 0.5 is for probabilities: got scores from %-2 to 3",
      tiny.error_of(accuracy.update, accuracy, logits, wanted))
    for _, options in ipairs { { from_logits = true }, { threshold = 0 } } do
      accuracy = metrics.Accuracy(options)
      accuracy:update(logits, wanted)
      assert.equal(0.75, accuracy:compute())
    end
  end)

  it("of two classes compares with a threshold", function()
    local accuracy = metrics.Accuracy { threshold = 0.3 }
    accuracy:update(lt.tensor { 0.2, 0.4, 0.9 }, lt.tensor { 0, 0, 1 })
    assert.near(2 / 3, accuracy:compute(), 1e-12)
  end)

  it("reports both shapes when they do not fit", function()
    local accuracy = metrics.Accuracy()
    assert.matches("scores %[4, 3%], labels %[3%]", tiny.error_of(accuracy.update, accuracy,
      lt.tensor(scores), lt.tensor { 1, 2, 0 }))
    assert.matches("labels must be integers: got f32", tiny.error_of(accuracy.update, accuracy,
      lt.tensor(scores), lt.tensor { 1.0, 2.0, 0.0, 0.0 }))
  end)

  it("gives the value of the batch when called", function()
    local accuracy = metrics.Accuracy()
    assert.equal(1, accuracy(lt.tensor { 1 }, lt.tensor { 1 }))
    assert.equal(0, accuracy(lt.tensor { 1 }, lt.tensor { 0 }))
    assert.equal(0.5, accuracy:compute())
  end)
end)
