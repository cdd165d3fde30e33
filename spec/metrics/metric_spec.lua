-- spec/metrics/metric_spec.lua: states, joining, saving.

local lt = require "ltrain"
local error_of = require "spec.error_of"

local Range = lt.Metric:extend("Range")
function Range:init()
  self:add_state("low", math.huge, { reduce = "min" })
  self:add_state("high", -math.huge, { reduce = "max" })
  self:add_state("total", 0.0)
  self:add_state("seen", {})
end
function Range:update(x)
  self.low, self.high = math.min(self.low, x), math.max(self.high, x)
  self.total = self.total + x
  self.seen[#self.seen + 1] = x
end
function Range:compute() return self.high - self.low end

local Histogram = lt.Metric:extend("Histogram")
function Histogram:init() self:add_state("counts", lt.zeros(3)) end
function Histogram:update(x) self.counts = self.counts + x end
function Histogram:compute() return self.counts:sum():item() end

describe("Metric", function()
  it("gathers over updates until it is reset", function()
    local metric = Range()
    metric:update(3)
    metric:update(10)
    assert.equal(7, metric:compute())
    metric:reset()
    metric:update(1)
    assert.equal(0, metric:compute())
    assert.same({ 1 }, metric.seen)
  end)

  it("does not share lists or tensors between objects", function()
    local a, b = Histogram(), Histogram()
    a.counts:fill_(1)
    assert.same({ 0, 0, 0 }, b.counts:tolist())
    a:reset()
    assert.same({ 0, 0, 0 }, a.counts:tolist())
  end)

  it("gives the value of one batch when called, and keeps the whole", function()
    local metric = Range()
    metric:update(100)
    metric:update(1)
    assert.equal(0, metric(5))
    assert.equal(0, metric.batch_value)
    assert.equal(99, metric:compute())
    assert.same({ 100, 1, 5 }, metric.seen)
  end)

  it("merges by sum, min, max and cat", function()
    local a, b = Range(), Range()
    a:update(2)
    b:update(7)
    b:update(-1)
    a:merge(b)
    assert.same({ -1, 7, 8 }, { a.low, a.high, a.total })
    assert.same({ 2, 7, -1 }, a.seen)
    assert.same({ 7, -1 }, b.seen)
  end)

  it("merges tensors", function()
    local a, b = Histogram(), Histogram()
    a:update(lt.tensor { 1, 2, 3 })
    b:update(lt.tensor { 10, 0, 0 })
    a:merge(b)
    assert.same({ 11, 2, 3 }, a.counts:tolist())
  end)

  it("merges its own class only", function()
    assert.matches("merge: a Range is needed: got an object of class Histogram",
      error_of(Range().merge, Range(), Histogram()))
  end)

  it("brings its state back", function()
    local a, b = Range(), Range()
    a:update(3)
    local state = a:state_dict()
    a:update(9)
    b:load_state_dict(state)
    assert.same({ 3, 3, 3 }, { b.low, b.high, b.total })
    b:update(4)
    assert.same({ 3 }, state.seen)
  end)

  it("refuses the state of another metric", function()
    assert.matches("load_state_dict: state 'counts' of Histogram must be a tensor %[3%]: got nil",
      error_of(Histogram().load_state_dict, Histogram(), Range():state_dict()))
  end)

  it("says what a class lacks", function()
    local Empty = lt.Metric:extend("Empty")
    assert.matches("Empty: update is not defined", error_of(Empty().update, Empty()))
    assert.matches("Empty: compute is not defined", error_of(Empty().compute, Empty()))
  end)

  it("refuses a state that cannot be joined", function()
    local metric = Range()
    assert.matches("add_state: 'x' must start from a number, a tensor, or {}",
      error_of(metric.add_state, metric, "x", "text"))
    assert.matches("'update' is a method of every Metric",
      error_of(metric.add_state, metric, "update", 0))
    assert.matches("reduce must be 'sum', 'min', 'max' or 'cat': got 'mean'",
      error_of(metric.add_state, metric, "x", 0, { reduce = "mean" }))
  end)
end)
