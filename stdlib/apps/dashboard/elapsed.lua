--- stdlib/apps/dashboard/elapsed.lua: the time since the start of a run at which a step was taken.
--
-- system.csv says when which step had been reached, each second or so; between two such moments
-- time is shared out evenly. Of a run that was resumed the pauses do not count, and of steps that
-- were made twice the last time does.
local json = require "ltrain.apps.dashboard.json"

local elapsed = {}

-- When each loop began, and how much of the time until then was pause, from the loops of run.json.
-- A loop that was killed ended with the last moment before the next began.
local function pauses_of(info, times)
  local list, paused, k = {}, 0.0, 0
  local loops = type(info.loops) == "table" and info.loops or {}
  for i, loop in ipairs(loops) do
    local next_one = loops[i + 1]
    if type(loop) == "table" and type(loop.started) == "number" then
      list[#list + 1] = { from = loop.started, paused = paused }
    end
    if type(next_one) == "table" and type(next_one.started) == "number" then
      local ended = type(loop.ended) == "number" and loop.ended or nil
      while times[k + 1] and times[k + 1] <= next_one.started do k = k + 1 end
      ended = ended or times[k]
      if ended then paused = paused + math.max(next_one.started - ended, 0) end
    end
  end
  return list
end

local function without_pauses(list, started, time)
  local paused = 0
  for _, one in ipairs(list) do
    if one.from <= time then paused = one.paused end
  end
  return math.max(time - started - paused, 0)
end

-- The moments of a run: steps and times, both ascending.
local function moments_of(run)
  local system = run.system
  if not system:update() then return {}, {} end
  local k = system:find "time"
  if not k then return {}, {} end
  local steps, _, times = system.curves:points(k, "row", nil, nil, 0)
  local started = type(run.info.started) == "number" and run.info.started or times[1]
  local list = pauses_of(run.info, times)
  local xs, ys = { 0 }, { 0.0 }
  for i, time in ipairs(times) do
    while #xs > 1 and xs[#xs] >= steps[i] do xs[#xs], ys[#ys] = nil, nil end
    if type(time) == "number" and steps[i] > xs[#xs] then
      xs[#xs + 1], ys[#ys + 1] = steps[i], without_pauses(list, started, time)
    end
  end
  return xs, ys
end

-- y at x of a line through points with ascending xs; beyond its ends as between the last two.
local function at(xs, ys, x)
  local low, high = 1, #xs
  while high - low > 1 do
    local middle = (low + high) // 2
    if xs[middle] <= x then low = middle else high = middle end
  end
  local width = xs[high] - xs[low]
  if width == 0 then return ys[low] end
  return ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / width
end

--- Two functions of a run: from steps to seconds, and back. Nil where it has recorded no times.
function elapsed.of(run)
  local xs, ys = moments_of(run)
  if #xs < 2 then return nil end
  return function(step) return math.max(at(xs, ys, step), 0) end,
    function(seconds) return at(ys, xs, seconds) end
end

--- The times of a list of steps, as a list of JSON; empty where they are not known.
function elapsed.list(of, steps)
  local list = {}
  for i = 1, of and #steps or 0 do list[i] = of(steps[i]) end
  return json.list(list)
end

return elapsed
