--- stdlib/apps/dashboard/run_diff.lua: the differences between two runs (GET /api/diff).
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local charts = require "ltrain.apps.dashboard.charts"
local code_diff = require "ltrain.apps.dashboard.code_diff"
local json = require "ltrain.apps.dashboard.json"
local time_slices = require "ltrain.apps.dashboard.time_slices"
local tree = require "ltrain.core.tree"

local run_diff = {}

local OF_RUN <const> = { "status", "seed", "ranks", "threads", "version", "command", "script",
  "epoch", "step", "resumed_from" }

local function show(value)
  if type(value) ~= "table" then return value end
  local parts = {}
  for i, one in ipairs(value) do parts[i] = tostring(one) end
  return table.concat(parts, " ")
end

-- {name =, a =, b =} of the names whose values are not the same, sorted; and how many are.
local function compare(a, b)
  local names, list, same = {}, json.list {}, 0
  for name in next, a do names[name] = true end
  for name in next, b do names[name] = true end
  for name in tree.pairs(names) do
    time_slices.pause()
    if a[name] == b[name] and math.type(a[name]) == math.type(b[name]) then
      same = same + 1
    else
      list[#list + 1] = { name = name, a = show(a[name]), b = show(b[name]) }
    end
  end
  return list, same
end

local function of_run(run)
  local values = {}
  for _, name in ipairs(OF_RUN) do values[name] = show(run.info[name]) end
  values.status = run.status
  return values
end

local function compare_data(a, b)
  local x, y = a.info.data_sha256, b.info.data_sha256
  local answer = { a = x, b = y }
  if x and y then answer.same = x == y end
  return answer
end

local function compare_metrics(a, b)
  local by_name, list = {}, json.list {}
  for side, run in next, { a = a, b = b } do
    for _, one in ipairs(charts.summaries(run)) do
      time_slices.pause()
      local both = by_name[one.name] or { name = one.name }
      by_name[one.name], both[side] = both, one
    end
  end
  for _, both in tree.pairs(by_name) do
    time_slices.pause()
    list[#list + 1] = both
  end
  return list
end

--- GET /api/diff
function run_diff.answer(a, b)
  local options, same = compare(a.hparams, b.hparams)
  return { a = Catalogue.summary(a), b = Catalogue.summary(b), options = options,
    same_options = same, run = (compare(of_run(a), of_run(b))), data = compare_data(a, b),
    code = code_diff.compare(a, b), metrics = compare_metrics(a, b) }
end

return run_diff
