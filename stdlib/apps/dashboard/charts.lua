--- stdlib/apps/dashboard/charts.lua: answers requests for a run's metric curves, downsampled to the
--- points that a chart can show.
local elapsed = require "ltrain.apps.dashboard.elapsed"
local better_mode = require "ltrain.runs.better_mode"
local json = require "ltrain.apps.dashboard.json"
local request_target = require "ltrain.apps.dashboard.request_target"
local time_slices = require "ltrain.apps.dashboard.time_slices"

local charts = {}

local MOST <const> = 64 -- metrics where none is named
local AXES <const> = { "step", "epoch", "time" }

-- The numbers of the metrics that are asked for, and their names.
local function wanted(run, asked)
  local names, list = run.metrics.curves:names(), {}
  if not asked then
    for k = 1, math.min(#names, MOST) do list[k] = { k, names[k] } end
    return list
  end
  for _, name in ipairs(asked) do
    local k = run.metrics:find(name)
    if k then list[#list + 1] = { k, name } end
  end
  return list
end

-- The range in steps or epochs of one that may be given in seconds.
local function range_of(query, x, to_step)
  local from, to = request_target.number(query, "from"), request_target.number(query, "to")
  if x ~= "time" then return x, from, to end
  return "step", from and math.floor(to_step(from)), to and math.ceil(to_step(to))
end

--- GET /api/run/ID/metrics. Raises {status, reason}.
function charts.metrics(run, query)
  local x = request_target.text(query, "x", "step", AXES)
  local points = request_target.integer(query, "points", 2000, 10, 20000)
  local curves, message = run.metrics:update()
  if not curves then error({ 404, message }, 0) end
  local answer = { id = run.id, generation = run.metrics.generation, rows = (curves:size()), x = x,
    series = json.list {} }
  local to_time, to_step
  if x == "time" then
    to_time, to_step = elapsed.of(run)
    if not to_time then
      answer.problem = "this run has recorded no times"
      return answer
    end
  end
  local axis, from, to = range_of(query, x, to_step)
  for _, one in ipairs(wanted(run, query.name)) do
    local steps, epochs, values, count = curves:points(one[1], axis, from, to, points)
    local xs = x == "step" and steps or x == "epoch" and epochs or elapsed.list(to_time, steps)
    table.insert(answer.series, { name = one[2], count = count, decimated = count > #values,
      x = json.list(xs), step = json.list(steps), y = json.list(values) })
  end
  return answer
end

--- Of each metric: {name =, count =, last =, best =, best_step =, mode =}.
function charts.summaries(run)
  local curves, list = run.metrics:update(), json.list {}
  if not curves then return list end
  for k, name in ipairs(curves:names()) do
    time_slices.pause()
    local count, last, low, low_step, high, high_step = curves:summary(k)
    local mode = better_mode(name)
    local best, step = low, low_step
    if mode == "max" then best, step = high, high_step end
    list[k] = { name = name, count = count, last = last, best = best, best_step = step,
      mode = mode }
  end
  return list
end

--- What has come after `rows` rows, for an event; nil where nothing has.
function charts.since(run, rows)
  local curves = run.metrics.curves
  local now = curves:size()
  if now <= rows then return nil end
  local event = { id = run.id, generation = run.metrics.generation, from = rows, rows = now,
    series = json.list {} }
  local to_time = elapsed.of(run)
  for k, name in ipairs(curves:names()) do
    local steps, epochs, values = curves:points(k, "row", rows, now, 0)
    if #values > 0 then
      table.insert(event.series, { name = name, step = steps, epoch = epochs, y = values,
        time = elapsed.list(to_time, steps) })
    end
  end
  return event
end

return charts
