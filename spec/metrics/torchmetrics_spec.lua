-- spec/metrics/torchmetrics_spec.lua: every metric computes what torchmetrics does of random
-- batches, whichever way they are cut, merged, saved, or put on a device.
--
-- What torchmetrics computed is recorded; ./dev parity draws other batches with a torchmetrics that
-- is there.
local cases = require "spec.metrics.cases"
local lt = require "ltrain"

-- Metrics without a case: they hold others, or are not of whole data.
local ELSEWHERE <const> = {
  ClasswiseWrapper = true, Metric = true, MetricCollection = true, MetricTracker = true,
  MinMaxMetric = true, Running = true, RunningMean = true, RunningSum = true,
}

-- Metrics whose sums are of integers, so that the order does not matter: all others may differ in
-- the last bits.
local EXACT <const> = {}
for name in ([[Accuracy AUROC AveragePrecision CohenKappa ConfusionMatrix ExactMatch F1 FBetaScore
    HammingDistance JaccardIndex MatthewsCorrCoef Precision PrecisionRecallCurve ROC Recall
    Specificity StatScores Max Min]]):gmatch "%S+" do
  EXACT[name] = true
end

local function update(metric, batches)
  for _, batch in ipairs(batches) do metric:update(table.unpack(batch)) end
  return metric
end

local console = require "ltrain.core.console"
local say = console.say

-- Each batch as a list of rows or of smaller batches: cut after row `k` of what can be cut.
local function cut(batch, k)
  local n = lt.is_tensor(batch[1]) and batch[1].ndim > 0 and batch[1].shape[1] or #batch[1]
  if n < 2 then return { batch } end
  k = 1 + k % (n - 1)
  local first, second = {}, {}
  for i, value in ipairs(batch) do
    if lt.is_tensor(value) then
      first[i], second[i] = value:narrow(1, 1, k), value:narrow(1, k + 1, n - k)
    else
      first[i], second[i] = table.move(value, 1, k, 1, {}), table.move(value, k + 1, n, 1, {})
    end
  end
  return { first, second }
end

local function on_device(value)
  if lt.is_tensor(value) then return value:to "fake" end
  if type(value) ~= "table" then return value end
  local all = {}
  for key, one in pairs(value) do all[key] = on_device(one) end
  return all
end

describe("what torchmetrics computes", function()
  setup(function() console.say = function() end end)
  teardown(function() console.say = say end)

  it("is recorded for every metric", function()
    for _, name in pairs(lt.metrics) do
      assert(cases.by_metric[name] or ELSEWHERE[name], name .. " has no case")
    end
  end)

  for _, name in ipairs(cases.names) do
    local bound <const> = EXACT[name] and 0 or 1e-9

    it("is what " .. name .. " computes", function()
      for i, case in ipairs(cases.by_metric[name]) do
        local metric = update(cases.new(case), case.batches)
        local what = ("%s case %d %s"):format(name, i, lt.json.encode(case.options))
        cases.check(cases.value_of(metric), case.value, case.tolerance, what)
      end
    end)

    it("is what " .. name .. " computes of merged parts of batches cut anywhere", function()
      for i, case in ipairs(cases.by_metric[name]) do
        local whole = update(cases.new(case), case.batches)
        local parts = { cases.new(case), cases.new(case), cases.new(case) }
        for k, batch in ipairs(case.batches) do
          for j, piece in ipairs(cut(batch, i * 7 + k)) do
            update(parts[math.min(3, (k + j) // 2 + (k + j) % 2)], { piece })
          end
        end
        local joined = cases.value_of(whole)
        local saved = {}
        for k, part in ipairs(parts) do saved[k] = part:state_dict() end
        local what = ("%s case %d"):format(name, i)
        local by_parts = table.pack(cases.new(case):figure_of(saved))
        cases.check(by_parts.n == 1 and by_parts[1] or by_parts, joined, bound, what .. " of parts")
        parts[1]:merge(parts[2])
        parts[1]:merge(parts[3])
        cases.check(cases.value_of(parts[1]), joined, bound, what .. " merged")
        local loaded = cases.new(case)
        loaded:load_state_dict(parts[1]:state_dict())
        cases.check(cases.value_of(loaded), joined, bound, what .. " saved")
        parts[1]:reset()
        cases.check(cases.value_of(update(parts[1], case.batches)), joined, bound, what .. " reset")
      end
    end)

    it("is what " .. name .. " computes of batches on a device", function()
      for i, case in ipairs(cases.by_metric[name]) do
        local here, there = cases.new(case), cases.new(case)
        for _, batch in ipairs(case.batches) do
          here(table.unpack(batch))
          there(table.unpack(on_device(batch)))
        end
        -- Of f32 kernels (Perplexity) the last bits may be others on a device.
        cases.check(cases.value_of(there), cases.value_of(here), EXACT[name] and 1e-12 or 1e-6,
          ("%s case %d"):format(name, i))
      end
    end)
  end
end)
