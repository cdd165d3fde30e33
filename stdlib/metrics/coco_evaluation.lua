--- stdlib/metrics/coco_evaluation.lua: mean average precision and recall of detected boxes as
-- COCO's pycocotools computes them.
--
-- An image is { detections = rows { x1, y1, x2, y2, score, class }, objects = rows { x1, y1, x2,
-- y2, class, crowd, area } }. Objects that are crowds, or outside the current range of areas,
-- are ignored: detections matched with them are neither true nor false positives.
local coco = {}

local RANGES <const> = {
  { "all", 0, 1e10 }, { "small", 0, 32 ^ 2 }, { "medium", 32 ^ 2, 96 ^ 2 },
  { "large", 96 ^ 2, 1e10 },
}

local function area(box) return (box[3] - box[1]) * (box[4] - box[2]) end

-- Intersection over union; of a crowd over the area of the detection.
local function overlap(detection, object)
  local width = math.min(detection[3], object[3]) - math.max(detection[1], object[1])
  local height = math.min(detection[4], object[4]) - math.max(detection[2], object[2])
  if width <= 0 or height <= 0 then return 0.0 end
  local both = width * height
  if object[6] == 1 then return both / area(detection) end
  return both / (area(detection) + area(object) - both)
end

-- A stable sort: rows of higher `key` first.
local function sorted(list, key)
  local order = {}
  for i, row in ipairs(list) do order[i] = { row = row, i = i } end
  table.sort(order, function(a, b)
    if a.row[key] ~= b.row[key] then return a.row[key] > b.row[key] end
    return a.i < b.i
  end)
  local result = {}
  for i, one in ipairs(order) do result[i] = one.row end
  return result
end

-- Adds the rows of a list to the parts of their classes, under `key`; `column` has the class.
local function deal(parts, rows, column, key)
  for _, row in ipairs(rows) do
    local class = row[column]
    parts[class] = parts[class] or { detections = {}, objects = {}, overlaps = {} }
    table.insert(parts[class][key], row)
  end
end

-- The parts of an image by class: its `most` best detections, its objects, and their overlaps.
local function parts_of(image, most)
  local parts = {}
  deal(parts, image.detections, 6, "detections")
  deal(parts, image.objects, 5, "objects")
  for _, part in pairs(parts) do
    local best = sorted(part.detections, 5)
    part.detections = table.move(best, 1, math.min(most, #best), 1, {})
    for d, detection in ipairs(part.detections) do
      part.overlaps[d] = {}
      for g, object in ipairs(part.objects) do part.overlaps[d][g] = overlap(detection, object) end
    end
  end
  return parts
end

-- The classes, ascending, and of each the parts of all images that have some of it.
local function by_class(images, most)
  local ids, parts = {}, {}
  for _, image in ipairs(images) do
    for class, part in pairs(parts_of(image, most)) do
      if not parts[class] then
        parts[class] = {}
        ids[#ids + 1] = class
      end
      table.insert(parts[class], part)
    end
  end
  table.sort(ids)
  return ids, parts
end

local function is_outside(size, range) return size < range[2] or size > range[3] end

-- The outcome of a detection.
local RIGHT <const>, WRONG <const>, IGNORED <const> = 1, 2, 3

-- The object that a detection is matched with; nil: none. Objects come in the order of `seen`,
-- ignored ones last.
local function match(part, d, threshold, seen, taken)
  local best, least, overlaps = nil, math.min(threshold, 1 - 1e-10), part.overlaps[d]
  for _, g in ipairs(seen.order) do
    if not (taken[g] and part.objects[g][6] ~= 1) then
      if best and not seen.ignored[best] and seen.ignored[g] then break end
      local now = overlaps[g]
      if now >= least then best, least = g, now end
    end
  end
  return best
end

-- A part restricted to a range of areas: its objects, ignored ones last; which are ignored; how
-- many are not; and the outcome of detections that are not matched.
local function look(part, range)
  local first, last, ignored, unmatched = {}, {}, {}, {}
  for g, object in ipairs(part.objects) do
    ignored[g] = object[6] == 1 or is_outside(object[7], range)
    local list = ignored[g] and last or first
    list[#list + 1] = g
  end
  for d, detection in ipairs(part.detections) do
    unmatched[d] = is_outside(area(detection), range) and IGNORED or WRONG
  end
  local count = #first
  return { order = table.move(last, 1, #last, count + 1, first), ignored = ignored, count = count,
    unmatched = unmatched }
end

-- The outcome of each detection of a part.
local function judge(part, seen, threshold)
  if not seen.order[1] then return seen.unmatched end
  local taken, outcomes = {}, {}
  for d = 1, #part.detections do
    local g = match(part, d, threshold, seen, taken)
    if g then taken[g] = true end
    outcomes[d] = not g and seen.unmatched[d] or seen.ignored[g] and IGNORED or RIGHT
  end
  return outcomes
end

-- The detections of all parts, { score, number of the part, its place there }, best first.
local function rank(parts)
  local all = {}
  for i, part in ipairs(parts) do
    for d, detection in ipairs(part.detections) do all[#all + 1] = { detection[5], i, d } end
  end
  return sorted(all, 1)
end

-- Counts of true positives among the first `most` detections of each part.
local function right_within(parts_outcomes, most)
  local right = 0
  for _, outcomes in ipairs(parts_outcomes) do
    for d = 1, math.min(most, #outcomes) do
      if outcomes[d] == RIGHT then right = right + 1 end
    end
  end
  return right
end

-- Mean precision at the recalls, and the last recall, for `count` objects.
local function summarize(ranked, outcomes, count, recalls)
  local precision, recall, right, wrong = {}, {}, 0, 0
  for i, one in ipairs(ranked) do
    local outcome = outcomes[one[2]][one[3]]
    if outcome == RIGHT then right = right + 1 elseif outcome == WRONG then wrong = wrong + 1 end
    recall[i] = right / count
    precision[i] = right + wrong > 0 and right / (right + wrong) or 0.0
  end
  for i = #precision - 1, 1, -1 do precision[i] = math.max(precision[i], precision[i + 1]) end
  local total, i = 0.0, 1
  for _, wanted in ipairs(recalls) do
    while i <= #recall and recall[i] < wanted do i = i + 1 end
    if i > #recall then break end
    total = total + precision[i]
  end
  return total / #recalls, recall[#recall] or 0.0
end

-- Adds the values at one threshold to `add`.
local function add_values(ranked, outcomes, count, threshold, range, o, add)
  local precision, recall = summarize(ranked, outcomes, count, o.recalls)
  add("map_" .. range[1], precision)
  add("mar_" .. range[1], recall)
  if range[1] ~= "all" then return end
  for _, iou in ipairs { 0.5, 0.75 } do
    if math.abs(threshold - iou) < 1e-9 then add(("map_%d"):format(iou * 100), precision) end
  end
  for k = 1, 3 do
    add(("mar_%d"):format(o.most[k]), right_within(outcomes, o.most[k]) / count)
  end
end

-- The values of one class in one range of areas.
local function of_range(parts, ranked, range, o, add)
  local views, count = {}, 0
  for i, part in ipairs(parts) do
    views[i] = look(part, range)
    count = count + views[i].count
  end
  if count == 0 then return end
  for _, threshold in ipairs(o.thresholds) do
    local outcomes = {}
    for i, part in ipairs(parts) do outcomes[i] = judge(part, views[i], threshold) end
    add_values(ranked, outcomes, count, threshold, range, o, add)
  end
end

-- Means by name of what is added to them.
local function new_means()
  local sums, counts = {}, {}
  local function add(name, value)
    sums[name], counts[name] = (sums[name] or 0.0) + value, (counts[name] or 0) + 1
  end
  local function mean(name) return sums[name] and sums[name] / counts[name] or -1.0 end
  return add, mean
end

--- The values by name, and those of classes: { ids =, map =, mar = }.
function coco.evaluate(images, thresholds, recalls, most)
  local o = { thresholds = thresholds, recalls = recalls, most = most }
  local add, mean = new_means()
  local ids, parts = by_class(images, most[3])
  local classes = { ids = ids, map = {}, mar = {} }
  for k, class in ipairs(ids) do
    local add_here, mean_here = new_means()
    local function both(name, value)
      add(name, value)
      add_here(name, value)
    end
    local ranked = rank(parts[class])
    for _, range in ipairs(RANGES) do of_range(parts[class], ranked, range, o, both) end
    classes.map[k], classes.mar[k] = mean_here "map_all", mean_here "mar_all"
  end
  local values = { map = mean "map_all" }
  for _, name in ipairs { "map_50", "map_75", "map_small", "map_medium", "map_large", "mar_small",
    "mar_medium", "mar_large" } do
    values[name] = mean(name)
  end
  for k = 1, 3 do
    local name = ("mar_%d"):format(most[k])
    values[name] = mean(name)
  end
  return values, classes
end

return coco
