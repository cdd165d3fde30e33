-- spec/metrics/cases.lua: the cases of spec/metrics/torchmetrics_cases.py: metrics, batches and
-- what torchmetrics computes. LT_METRIC_CASES names another file of them than the recorded one.
local lt = require "ltrain"

local cases = {}

local SPECIAL <const> = { nan = 0.0 / 0.0, inf = math.huge, ["-inf"] = -math.huge }

-- JSON's tensors, and numbers that JSON lacks.
local function decode(value)
  if type(value) == "string" then return SPECIAL[value] or value end
  if type(value) ~= "table" then return value end
  if value.dtype then
    local flat = {}
    for i, x in ipairs(value.values) do flat[i] = decode(x) end
    local made = #flat > 0 and lt.tensor(flat, { dtype = value.dtype })
      or lt.zeros({ 0 }, { dtype = value.dtype })
    return made:reshape(value.shape)
  end
  local all = {}
  for key, one in pairs(value) do all[key] = decode(one) end
  return all
end

cases.file = os.getenv "LT_METRIC_CASES" or "spec/metrics/recorded.jsonl"
cases.list, cases.by_metric, cases.names = {}, {}, {}

for case in lt.json.lines(cases.file) do
  case = { metric = case.metric, options = decode(case.options), batches = decode(case.batches),
    value = decode(case.value), tolerance = case.tolerance,
    higher_is_better = case.higher_is_better }
  cases.list[#cases.list + 1] = case
  if not cases.by_metric[case.metric] then
    cases.by_metric[case.metric] = {}
    cases.names[#cases.names + 1] = case.metric
  end
  table.insert(cases.by_metric[case.metric], case)
end

--- A new metric of a case.
function cases.new(case)
  if next(case.options) == nil then return lt.metrics[case.metric]() end
  return lt.metrics[case.metric](case.options)
end

--- What a metric computes: one value, or a list of several.
function cases.value_of(metric)
  local values = table.pack(metric:compute { sync = false })
  return values.n == 1 and values[1] or values
end

-- The text of where two trees of numbers differ by more than `bound`; nil: they do not.
local function difference(got, want, bound, where)
  if lt.is_tensor(got) then
    if lt.is_tensor(want) and table.concat(got.shape, " ") ~= table.concat(want.shape, " ") then
      return ("%s: shapes [%s] and [%s]"):format(where, table.concat(got.shape, ", "),
        table.concat(want.shape, ", "))
    end
    got = got:tolist()
  end
  if lt.is_tensor(want) then want = want:tolist() end
  if type(want) == "table" then
    if type(got) ~= "table" then return ("%s: %s and a list"):format(where, tostring(got)) end
    for key, value in pairs(want) do
      local found = difference(got[key], value, bound, ("%s[%s]"):format(where, key))
      if found then return found end
    end
    return nil
  end
  if got == want or got ~= got and want ~= want then return nil end
  if type(got) == "number" and type(want) == "number"
    and math.abs(got - want) <= bound * math.max(1, math.abs(want)) then
    return nil
  end
  return ("%s: %s and %s"):format(where, tostring(got), tostring(want))
end

--- Raises if a value is not the wanted one.
function cases.check(got, want, bound, what)
  local found = difference(got, want, bound, what)
  assert(not found, found)
end

return cases
