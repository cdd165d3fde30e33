--- stdlib/apps/views/series.lua: metrics as points for charts: smoothed, on axes of their own.
local series = {}

local MOST <const> = 2000 -- points of a line: more are thinned out

-- An exponential moving average, corrected for its start, as TensorBoard's slider has it.
local function smooth(points, weight)
  local last, count = 0, 0
  for _, point in ipairs(points) do
    last, count = last * weight + (1 - weight) * point[2], count + 1
    point[2] = last / (1 - weight ^ count)
  end
end

-- The lowest and the highest point of each piece, in their order.
local function thin(points)
  if #points <= MOST then return points end
  local kept, pieces = {}, MOST // 2
  for k = 0, pieces - 1 do
    local first, last = k * #points // pieces + 1, (k + 1) * #points // pieces
    local low, high = first, first
    for i = first, last do
      if points[i][2] < points[low][2] then low = i end
      if points[i][2] > points[high][2] then high = i end
    end
    kept[#kept + 1] = points[math.min(low, high)]
    if low ~= high then kept[#kept + 1] = points[math.max(low, high)] end
  end
  return kept
end

--- The line of a metric of a run: {label =, points = a list of {x, y}, left_out = how many values
--- cannot be drawn: those that are not finite, and with log_y those that are not above 0}. Options:
--- x, "step" or "epoch"; smooth, a weight from 0 to below 1; log_y. nil where the run has no such
--- metric.
function series.line(run, name, label, o)
  local metric = run.metrics[name]
  if not metric then return nil end
  return series.of(o.x == "epoch" and metric.epochs or metric.steps, metric.values, label, o)
end

--- The same of values at the places xs; o: smooth, log_y.
function series.of(xs, values, label, o)
  local points, left_out = {}, 0
  for i, y in ipairs(values) do
    if y ~= y or y == math.huge or y == -math.huge or o.log_y and y <= 0 then
      left_out = left_out + 1
    else
      points[#points + 1] = { xs[i], y }
    end
  end
  if o.smooth > 0 then smooth(points, o.smooth) end
  if o.log_y then
    for _, point in ipairs(points) do point[2] = math.log(point[2], 10) end
  end
  return { label = label, points = thin(points), left_out = left_out }
end

--- What lines span: x0, x1, y0, y1, each with x0 < x1 and y0 < y1; nil without a point.
function series.span(lines)
  local x0, x1, y0, y1 = math.huge, -math.huge, math.huge, -math.huge
  for _, line in ipairs(lines) do
    for _, point in ipairs(line.points) do
      x0, x1 = math.min(x0, point[1]), math.max(x1, point[1])
      y0, y1 = math.min(y0, point[2]), math.max(y1, point[2])
    end
  end
  if x0 > x1 then return nil end
  if x0 == x1 then x0, x1 = x0 - 0.5, x1 + 0.5 end
  if y0 == y1 then
    local margin = y0 == 0 and 1 or math.abs(y0) * 0.1
    y0, y1 = y0 - margin, y1 + margin
  end
  return x0, x1, y0, y1
end

return series
