--- stdlib/metrics/MeanAveragePrecision.lua: mean average precision (and recall) of detected
-- boxes, as COCO's evaluation computes it.
--
-- For each class the detections of all images are sorted by score. A detection is a true positive
-- if its IoU with an object that is not matched yet is at least the threshold; average precision is
-- the mean of interpolated precision at 101 recalls. D detections, G objects of an image.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local coco = require "ltrain.metrics.coco_evaluation"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local MeanAveragePrecision = Metric:extend("MeanAveragePrecision")

MeanAveragePrecision.__arguments = "| box_format (iou_type) iou_thresholds rec_thresholds "
  .. "max_detection_thresholds class_metrics"

MeanAveragePrecision.higher_is_better = true

-- A check for a list of ascending numbers.
local function not_rising(list)
  for i, value in ipairs(list) do
    if type(value) ~= "number" or i > 1 and value <= list[i - 1] then
      return "must be a list of numbers that rises"
    end
  end
  return #list == 0 and "must not be empty" or nil
end

-- Numbers from `first` to `last`, evenly, with the bits of COCO's evaluation.
local function steps(first, last, count)
  local list, step = {}, (last - first) / (count - 1)
  for i = 1, count - 1 do list[i] = first + step * (i - 1) end
  list[count] = last
  return list
end

MeanAveragePrecision.options = {
  box_format = { type = "string", default = "xyxy", choices = { "xyxy", "xywh", "cxcywh" },
    doc = "corners; corner and size; or center and size" },
  iou_thresholds = { type = "table", check = not_rising,
    doc = "thresholds of IoU; 0.5, 0.55, ..., 0.95 by default" },
  rec_thresholds = { type = "table", check = not_rising,
    doc = "recalls at which precision is averaged; 0, 0.01, ..., 1 by default" },
  max_detection_thresholds = { type = "table", default = { 1, 10, 100 }, check = not_rising,
    doc = "three limits of the number of detections per image, by highest scores" },
  class_metrics = { type = "boolean", default = false,
    doc = "also compute the values of each class" },
}

--- MeanAveragePrecision{box_format = "xywh"}
function MeanAveragePrecision:init(options)
  local o = config.check(options, self.options, "metrics.MeanAveragePrecision")
  for name, value in next, o do self[name] = value end
  if #o.max_detection_thresholds ~= 3 then
    errors.blame("metrics.MeanAveragePrecision: max_detection_thresholds must be 3 numbers: got %d",
      #o.max_detection_thresholds)
  end
  self.iou_thresholds = o.iou_thresholds or steps(0.5, 0.95, 10)
  self.rec_thresholds = o.rec_thresholds or steps(0.0, 1.0, 101)
  self:add_state("detections", {})
  self:add_state("objects", {})
end

local function field(image, name, rows, sizes)
  local x = image[name]
  if not c.is_tensor(x) then
    errors.blame("metrics.MeanAveragePrecision: '%s' must be a tensor: got %s", name,
      errors.show(x))
  elseif #x.shape ~= sizes or rows and x.shape[1] ~= rows or sizes == 2 and x.shape[2] ~= 4 then
    errors.blame("metrics.MeanAveragePrecision: '%s' must be %s: got %s", name,
      sizes == 2 and "[N, 4]" or ("[%d], one for each box"):format(rows), errors.show_shape(x))
  end
  return x:detach():to "cpu":to "f64"
end

-- Boxes [N, 4] as corners.
local function corners(boxes, format)
  if format == "xyxy" then return boxes end
  local low, size = boxes:narrow(2, 1, 2), boxes:narrow(2, 3, 2)
  if format == "cxcywh" then low = low - size / 2 end
  return c.cat({ low, low + size }, 2)
end

-- An image's fields as one table [N, ...] of columns after the boxes.
local function table_of(self, image, names, defaults)
  if type(image) ~= "table" then
    errors.blame("metrics.MeanAveragePrecision: update needs a table for each image: got %s",
      errors.show(image))
  end
  local boxes = corners(field(image, "boxes", nil, 2), self.box_format)
  local rows, columns = boxes.shape[1], { boxes }
  for _, name in ipairs(names) do
    local values = image[name] == nil and defaults[name] and defaults[name](boxes)
      or field(image, name, rows, 1)
    columns[#columns + 1] = values:reshape { rows, 1 }
  end
  return c.cat(columns, 2)
end

local DEFAULTS <const> = {
  iscrowd = function(boxes) return c.zeros({ boxes.shape[1] }, { dtype = "f64" }) end,
  area = function(boxes)
    local size = boxes:narrow(2, 3, 2) - boxes:narrow(2, 1, 2)
    return size:select(2, 1) * size:select(2, 2)
  end,
}

--- Updates the metric with lists of tables, one for each image: predictions have `boxes` [D, 4],
--- `scores` [D] and `labels` [D]; targets `boxes` [G, 4], `labels` [G], and if known `iscrowd` [G]
--- (0 or 1) and `area` [G].
function MeanAveragePrecision:update(predictions, targets)
  if type(predictions) ~= "table" or type(targets) ~= "table" or #predictions ~= #targets then
    errors.blame("metrics.MeanAveragePrecision: update needs two lists of one length: got %s and "
      .. "%s", errors.show(predictions), errors.show(targets))
  end
  for i, image in ipairs(predictions) do
    table.insert(self.detections, table_of(self, image, { "scores", "labels" }, {}))
    table.insert(self.objects,
      table_of(self, targets[i], { "labels", "iscrowd", "area" }, DEFAULTS))
  end
end

--- Returns a table: map, map_50, map_75, map_small, map_medium, map_large, mar_1, mar_10, mar_100
--- (the numbers of max_detection_thresholds), mar_small, mar_medium, mar_large; with class_metrics
--- also the tensors classes, map_per_class and mar_100_per_class. Values without objects are -1, as
--- in COCO's evaluation.
function MeanAveragePrecision:compute()
  local images = {}
  for i, detections in ipairs(self.detections) do
    images[i] = { detections = detections:tolist(), objects = self.objects[i]:tolist() }
  end
  local values, of_classes = coco.evaluate(images, self.iou_thresholds, self.rec_thresholds,
    self.max_detection_thresholds)
  if self.class_metrics then
    local most = self.max_detection_thresholds[3]
    values.classes = c.tensor(of_classes.ids, { dtype = "i64" })
    values.map_per_class = c.tensor(of_classes.map, { dtype = "f64" })
    values[("mar_%d_per_class"):format(most)] = c.tensor(of_classes.mar, { dtype = "f64" })
  end
  return values
end

return MeanAveragePrecision
