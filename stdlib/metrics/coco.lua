--- stdlib/metrics/coco.lua: COCO's evaluation of detected boxes.
--
-- An image is { detections = rows { x1, y1, x2, y2, score, class }, objects = rows { x1, y1, x2,
-- y2, class, crowd, area } }. Objects that are crowds, or not of the range of areas that is looked
-- at, are ignored: what is matched with them counts neither as right nor as wrong.
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

-- The rows of a class of an image: its `most` best detections, its objects, and their overlaps.
local function of_class(image, class, most)
  local detections, objects, overlaps = {}, {}, {}
  for _, row in ipairs(image.detections) do
    if row[6] == class then detections[#detections + 1] = row end
  end
  for _, row in ipairs(image.objects) do
    if row[5] == class then objects[#objects + 1] = row end
  end
  detections = table.move(sorted(detections, 5), 1, math.min(most, #detections), 1, {})
  for d, detection in ipairs(detections) do
    overlaps[d] = {}
    for g, object in ipairs(objects) do overlaps[d][g] = overlap(detection, object) end
  end
  return { detections = detections, objects = objects, overlaps = overlaps }
end

local function is_outside(size, range) return size < range[2] or size > range[3] end

-- The object that a detection is matched with; nil: none. `ignored` ones come after the others.
local function match(part, d, threshold, order, ignored, taken)
  local best, least = nil, math.min(threshold, 1 - 1e-10)
  for _, g in ipairs(order) do
    if not (taken[g] and part.objects[g][6] ~= 1) then
      if best and not ignored[best] and ignored[g] then break end
      local now = part.overlaps[d][g]
      if now >= least then best, least = g, now end
    end
  end
  return best
end

-- Objects of a part, those that are not ignored first, which are ignored, and how many are not.
local function order_of(part, range)
  local first, last, ignored = {}, {}, {}
  for g, object in ipairs(part.objects) do
    ignored[g] = object[6] == 1 or is_outside(object[7], range)
    local list = ignored[g] and last or first
    list[#list + 1] = g
  end
  local count = #first
  return table.move(last, 1, #last, count + 1, first), ignored, count
end

-- What becomes of the detections of a part: a list of { score, place, "right" | "wrong" |
-- "ignored" }.
local function judge(part, threshold, range, order, ignored, found)
  local taken = {}
  for d, detection in ipairs(part.detections) do
    local g, verdict = match(part, d, threshold, order, ignored, taken), "wrong"
    if g then
      taken[g] = true
      verdict = ignored[g] and "ignored" or "right"
    elseif is_outside(area(detection), range) then
      verdict = "ignored"
    end
    found[#found + 1] = { detection[5], d, verdict }
  end
end

-- Mean precision at the recalls, and the last recall, of judged detections and `count` objects.
local function summarize(found, count, recalls)
  local precision, recall, right, wrong = {}, {}, 0, 0
  for _, one in ipairs(found) do
    if one[3] == "right" then right = right + 1 elseif one[3] == "wrong" then wrong = wrong + 1 end
    recall[#recall + 1] = right / count
    precision[#precision + 1] = right + wrong > 0 and right / (right + wrong) or 0.0
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

-- Of the first `most` detections of each image.
local function within(found, most)
  local list = {}
  for _, one in ipairs(found) do
    if one[2] <= most then list[#list + 1] = one end
  end
  return list
end

local function classes_of(images)
  local seen, list = {}, {}
  for _, image in ipairs(images) do
    for key, column in next, { detections = 6, objects = 5 } do
      for _, row in ipairs(image[key]) do
        if not seen[row[column]] then
          seen[row[column]] = true
          list[#list + 1] = math.tointeger(row[column]) or row[column]
        end
      end
    end
  end
  table.sort(list)
  return list
end

-- Adds the values of one class, in one range of areas, at one threshold to `add`.
local function of_threshold(parts, threshold, range, o, add)
  local found, count = {}, 0
  for _, part in ipairs(parts) do
    local order, ignored, here = order_of(part, range)
    count = count + here
    judge(part, threshold, range, order, ignored, found)
  end
  if count == 0 then return end
  found = sorted(found, 1)
  local precision, recall = summarize(found, count, o.recalls)
  add("map_" .. range[1], precision)
  add("mar_" .. range[1], recall)
  if range[1] ~= "all" then return end
  for _, iou in ipairs { 0.5, 0.75 } do
    if math.abs(threshold - iou) < 1e-9 then add(("map_%d"):format(iou * 100), precision) end
  end
  for k = 1, 3 do
    local _, at = summarize(within(found, o.most[k]), count, o.recalls)
    add(("mar_%d"):format(o.most[k]), at)
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
  local o = { recalls = recalls, most = most }
  local add, mean = new_means()
  local ids = classes_of(images)
  local classes = { ids = ids, map = {}, mar = {} }
  for k, class in ipairs(ids) do
    local parts = {}
    for i, image in ipairs(images) do parts[i] = of_class(image, class, most[3]) end
    local add_here, mean_here = new_means()
    local function both(name, value)
      add(name, value)
      add_here(name, value)
    end
    for _, range in ipairs(RANGES) do
      for _, threshold in ipairs(thresholds) do of_threshold(parts, threshold, range, o, both) end
    end
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
