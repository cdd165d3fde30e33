-- stdlib/optim/strong_wolfe.lua: a line search for a step that satisfies the strong Wolfe
-- conditions (Nocedal and Wright 2006, algorithm 3.5), with the steps of PyTorch's.
--
-- A point of the line is { t =, f =, g =, slope = }: the length of the step, the loss, its gradient
-- there, and that along the line.

local ARMIJO <const>, CURVATURE <const> = 1e-4, 0.9

-- The minimum between two points of the cubic through them, in low..high.
local function interpolate(a, b, low, high)
  low, high = low or math.min(a.t, b.t), high or math.max(a.t, b.t)
  local d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
  local square = d1 ^ 2 - a.slope * b.slope
  if square >= 0 then
    if a.t > b.t then a, b = b, a end
    local d2 = math.sqrt(square)
    local at = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return math.min(math.max(at, low), high)
  end
  return (low + high) / 2 -- also where a loss is NaN
end

-- Two points around one that satisfies the conditions; or this one, and true.
local function bracket(search, start)
  local before, point = start, search.evaluate(search.t)
  while search.tries < search.most do
    if point.f > start.f + ARMIJO * point.t * start.slope
      or search.tries > 1 and point.f >= before.f then
      return { before, point }, false
    elseif math.abs(point.slope) <= -CURVATURE * start.slope then
      return { point }, true
    elseif point.slope >= 0 then
      return { before, point }, false
    end
    local t = interpolate(before, point, point.t + 0.01 * (point.t - before.t), point.t * 10)
    before, point = point, search.evaluate(t)
    search.tries = search.tries + 1
  end
  return { start, point }, false
end

-- A length within the bracket, away from its ends when the last ones made little progress.
local function next_length(search, ends)
  local t = interpolate(ends[1], ends[2])
  local low, high = math.min(ends[1].t, ends[2].t), math.max(ends[1].t, ends[2].t)
  local margin = 0.1 * (high - low)
  if math.min(high - t, t - low) >= margin then
    search.stuck = false
  elseif search.stuck or t >= high or t <= low then
    search.stuck = false
    return math.abs(t - high) < math.abs(t - low) and high - margin or low + margin
  else
    search.stuck = true
  end
  return t
end

local function places(ends)
  if ends[1].f <= ends[#ends].f then return 1, 2 end
  return 2, 1
end

-- Narrows the bracket; returns its better end.
local function zoom(search, start, ends, size)
  local low, high = places(ends)
  local done = false
  while not done and search.tries < search.most do
    if math.abs(ends[2].t - ends[1].t) * size < search.tolerance then break end
    local point = search.evaluate(next_length(search, ends))
    search.tries = search.tries + 1
    if point.f > start.f + ARMIJO * point.t * start.slope or point.f >= ends[low].f then
      ends[high] = point
      low, high = places(ends)
    else
      done = math.abs(point.slope) <= -CURVATURE * start.slope
      local is_beyond = point.slope * (ends[high].t - ends[low].t) >= 0
      if not done and is_beyond then ends[high] = ends[low] end
      ends[low] = point
    end
  end
  return ends[low]
end

--- Returns the point that was found and the number of evaluations. `evaluate(t)` gives a point,
--- `start` is that of t = 0, `size` the largest element of the direction; `most`: evaluations after
--- the first.
return function(evaluate, t, start, size, most, tolerance)
  local count = 0
  local search = { t = t, tries = 0, most = most, tolerance = tolerance, stuck = false }
  function search.evaluate(length)
    count = count + 1
    return evaluate(length)
  end
  local ends, done = bracket(search, start)
  if done then return ends[1], count end
  local point = zoom(search, start, ends, size)
  return point, count
end
