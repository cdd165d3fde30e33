-- spec/metrics/devices_spec.lua: metrics whose batches are on a device: their states follow.
local lt = require "ltrain"

-- Two batches for each metric: { what makes it, arguments of its updates }.
local scores <const> = { lt.tensor { 0.1, 0.9, 0.4, 0.6 }, lt.tensor { 0.3, 0.8, 0.7, 0.2 } }
local labels <const> = { lt.tensor { 0, 1, 1, 0 }, lt.tensor { 0, 1, 0, 1 } }
local logits <const> = { lt.randn(4, 3), lt.randn(4, 3) }
local ids <const> = { lt.tensor { 0, 1, 2, 0 }, lt.tensor { 2, 1, 2, 1 } }

local MaxOf <const> = lt.Metric:extend "MaxOf"
function MaxOf:init()
  self:add_state("most", lt.full({ 2 }, -1.0), { reduce = "max" })
  self:add_state("seen", {})
end
function MaxOf:update(x)
  self.most = lt.maximum(self.most, x:narrow(1, 1, 2))
  table.insert(self.seen, x)
end
function MaxOf:compute() return self.most:sum():item() + lt.cat(self.seen, 1):sum():item() end

local CASES <const> = {
  Accuracy = { lt.metrics.Accuracy, scores, labels },
  ["Accuracy of classes"] = { function()
    return lt.metrics.Accuracy { top_k = 2 }
  end, logits, ids },
  AUROC = { lt.metrics.AUROC, scores, labels },
  ["AUROC in bins"] = { function() return lt.metrics.AUROC { thresholds = 5 } end, scores, labels },
  ["AUROC of classes"] = { function()
    return lt.metrics.AUROC { num_classes = 3, average = "macro", from_logits = true }
  end, logits, ids },
  F1 = { lt.metrics.F1, scores, labels },
  ["F1 of classes"] = { function()
    return lt.metrics.F1 { num_classes = 3, average = "macro", ignore_index = 2 }
  end, logits, ids },
  Mean = { lt.metrics.Mean, scores },
  ["one of one's own"] = { MaxOf, scores },
}

-- The metric after batch i on a device; with `call` its value is asked for.
local function take(metric, case, i, device, call)
  local args = { case[2][i]:to(device) }
  if case[3] then args[2] = case[3][i]:to(device) end
  if call then return metric(table.unpack(args)) end
  metric:update(table.unpack(args))
end

local function tensors_of(metric)
  local list = {}
  for _, state in ipairs(metric:states()) do
    local value = metric[state.name]
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      if type(one) == "userdata" then list[#list + 1] = one end
    end
  end
  return list
end

for name, case in pairs(CASES) do
  describe(name .. " on a device", function()
    local function both(fn)
      local wanted = fn("cpu")
      assert.equal(wanted, (fn "fake"))
    end

    it("computes what it computes on the CPU", function()
      both(function(device)
        local metric = case[1]()
        take(metric, case, 1, device)
        take(metric, case, 2, device)
        return metric:compute()
      end)
    end)

    it("gives the value of a batch, and is reset where it is", function()
      both(function(device)
        local metric = case[1]()
        local first = take(metric, case, 1, device, true)
        metric:reset()
        take(metric, case, 2, device, true)
        return ("%a %a"):format(first, metric:compute())
      end)
    end)

    it("takes states of the CPU to its device", function()
      local saved, metric = case[1](), case[1]()
      take(saved, case, 1, "cpu")
      take(metric, case, 2, "fake:2")
      metric:load_state_dict(saved:state_dict())
      for _, tensor in ipairs(tensors_of(metric)) do assert.equal("fake:2", tensor.device) end
      assert.equal(saved:compute(), metric:compute())
      take(metric, case, 2, "fake:2")
      take(saved, case, 2, "cpu")
      assert.equal(saved:compute(), metric:compute())
    end)

    it("goes from one device to the other with its batches", function()
      both(function(device)
        local metric = case[1]()
        take(metric, case, 1, device)
        take(metric, case, 2, "cpu")
        return metric:compute()
      end)
    end)
  end)
end

-- How often the host waits for the fake device in fn.
local function waits_in(fn)
  local counts = require("ltrain.c").runtime.fake_counts
  local before = counts().waits
  fn()
  return counts().waits - before
end

describe("updates on a device", function()
  local one <const> = lt.tensor { 0.5, 1.5, -3.25 }
  local UPDATES <const> = {
    Accuracy = { lt.metrics.Accuracy, logits[1], ids[1] },
    ["Accuracy of some"] = { function()
      return lt.metrics.Accuracy { ignore_index = 1 }
    end, logits[1], ids[1] },
    F1 = { lt.metrics.F1, scores[1], labels[1] },
    Mean = { lt.metrics.Mean, one },
    ["Mean with weights"] = { lt.metrics.Mean, one, lt.tensor { 1.0, 2, 4 } },
    Sum = { lt.metrics.Sum, one }, Max = { lt.metrics.Max, one }, Min = { lt.metrics.Min, one },
  }
  for name, case in pairs(UPDATES) do
    it("wait for nothing before the value is wanted: " .. name, function()
      local there, here = case[1](), case[1]()
      local args = { case[2]:to "fake", case[3] and case[3]:to "fake" }
      there:update(table.unpack(args))
      assert.equal(0, waits_in(function()
        for _ = 1, 3 do there:update(table.unpack(args)) end
      end))
      for _ = 1, 4 do here:update(case[2], case[3]) end
      local wanted = here:state_dict()
      for state, value in pairs(there:state_dict()) do
        assert.equal(wanted[state], type(value) == "number" and value or wanted[state])
      end
      assert.equal(here:compute(), there:compute())
    end)
  end

  it("are there for a merge, a copy of the states, and gone after a reset", function()
    local a, b, x = lt.metrics.Sum(), lt.metrics.Sum(), lt.tensor { 1.5, 2.5 }:to "fake"
    a:update(x)
    b:update(x)
    b:update(1)
    a:merge(b)
    assert.equal(9.0, a:compute())
    assert.same({ value = 5.0 }, b:state_dict())
    a:update(x)
    a:reset()
    assert.equal(0.0, a:compute())
    a:update(x)
    a:load_state_dict { value = 2.0 }
    assert.equal(2.0, a:compute())
  end)
end)

describe("Metric:to", function()
  it("moves states and their defaults", function()
    local metric = MaxOf()
    assert.equal(metric, metric:to "fake:1")
    assert.equal("fake:1", metric.most.device)
    metric:reset()
    assert.equal("fake:1", metric.most.device)
    assert.has_error(function() metric:to(3) end)
  end)
end)
