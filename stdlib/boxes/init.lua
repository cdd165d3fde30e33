-- stdlib/boxes/init.lua: lt.boxes: boxes [N, 4] of x1, y1, x2, y2, as torchvision.ops.
--
--   local lt = require "ltrain"
--   local a, b = lt.tensor{{0, 0, 10, 10}}, lt.tensor{{5, 0, 15, 10}, {20, 20, 30, 30}}
--   print(lt.boxes.box_iou(a, b))
--   -- prints: tensor([[0.3333, 0.0000]])

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"

local boxes = {}

local function check(x, where)
  if not c.is_tensor(x) or x.ndim ~= 2 or x.shape[2] ~= 4 then
    errors.blame("%s: boxes are a tensor [N, 4]: got %s", where, errors.show(x))
  end
  return x.dtype:find "f" and x or x:to "f32"
end

-- Columns [N] of boxes.
local function sides(x)
  return x:select(2, 1), x:select(2, 2), x:select(2, 3), x:select(2, 4)
end

local function area(x)
  local x1, y1, x2, y2 = sides(x)
  return (x2 - x1) * (y2 - y1)
end

--- Areas [N] of boxes.
---@param x Tensor [N, 4]
function boxes.box_area(x)
  local out <const> = area(check(x, "boxes.box_area"))
  return out
end

-- Width times height of what is between two corners, [N, M]; nothing where they have passed.
local function between(low_x, low_y, high_x, high_y)
  return (high_x - low_x):clamp { min = 0 } * (high_y - low_y):clamp { min = 0 }
end

-- Overlaps [N, M], unions [N, M], and the areas [N, M] of the least boxes around both.
local function compare(a, b)
  local ax1, ay1, ax2, ay2 = sides(a)
  local bx1, by1, bx2, by2 = sides(b)
  ax1, ay1, ax2, ay2 = ax1:unsqueeze(2), ay1:unsqueeze(2), ax2:unsqueeze(2), ay2:unsqueeze(2)
  local overlap <const> = between(c.maximum(ax1, bx1), c.maximum(ay1, by1), c.minimum(ax2, bx2),
    c.minimum(ay2, by2))
  local union <const> = area(a):unsqueeze(2) + area(b) - overlap
  local around <const> = between(c.minimum(ax1, bx1), c.minimum(ay1, by1), c.maximum(ax2, bx2),
    c.maximum(ay2, by2))
  return overlap, union, around
end

--- Intersection over union [N, M] of all pairs of boxes.
---@param a Tensor [N, 4]
---@param b Tensor [M, 4]
function boxes.box_iou(a, b)
  local overlap <const>, union = compare(check(a, "boxes.box_iou"), check(b, "boxes.box_iou"))
  return overlap / union
end

--- The same, minus the fraction of the smallest enclosing box that neither covers (Rezatofighi
--- 2019).
---@param a Tensor [N, 4]
---@param b Tensor [M, 4]
function boxes.generalized_box_iou(a, b)
  local where <const> = "boxes.generalized_box_iou"
  local overlap <const>, union <const>, around = compare(check(a, where), check(b, where))
  return overlap / union - (around - union) / around
end

local FORMATS <const> = { "xyxy", "xywh", "cxcywh" }

local TO_CORNERS <const> = {
  xyxy = function(x1, y1, x2, y2) return x1, y1, x2, y2 end,
  xywh = function(x, y, w, h) return x, y, x + w, y + h end,
  cxcywh = function(x, y, w, h) return x - w / 2, y - h / 2, x + w / 2, y + h / 2 end,
}
local FROM_CORNERS <const> = {
  xyxy = TO_CORNERS.xyxy,
  xywh = function(x1, y1, x2, y2) return x1, y1, x2 - x1, y2 - y1 end,
  cxcywh = function(x1, y1, x2, y2) return (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1 end,
}

--- Boxes in another format: "xyxy" (corners), "xywh" (a corner, width, height) or "cxcywh" (the
--- center, width, height).
---@param x Tensor [N, 4]
---@param in_fmt string
---@param out_fmt string
function boxes.box_convert(x, in_fmt, out_fmt)
  local where <const> = "boxes.box_convert"
  config.value(in_fmt, { type = "string", choices = FORMATS }, where, "in_fmt")
  config.value(out_fmt, { type = "string", choices = FORMATS }, where, "out_fmt")
  local x1, y1, x2, y2 = TO_CORNERS[in_fmt](sides(check(x, where)))
  local out <const> = c.stack({ FROM_CORNERS[out_fmt](x1, y1, x2, y2) }, 2)
  return out
end

--- Boxes clipped to an image of `size` {height, width}.
---@param x Tensor [N, 4]
---@param size table
function boxes.clip_boxes_to_image(x, size)
  local where <const> = "boxes.clip_boxes_to_image"
  local pair <const> = config.value(size, { type = "pair", min = 0 }, where, "size")
  if type(pair) ~= "table" then
    errors.blame("%s: size must be {height, width}: got %s", where, errors.show(size))
  end
  local x1, y1, x2, y2 = sides(check(x, where))
  local wide <const>, high <const> = { min = 0, max = pair[2] }, { min = 0, max = pair[1] }
  local out <const> = c.stack({ x1:clamp(wide), y1:clamp(high), x2:clamp(wide), y2:clamp(high) }, 2)
  return out
end

--- Ids (i64, from 0) of the boxes whose sides are both at least `min_size`.
---@param x Tensor [N, 4]
---@param min_size number
function boxes.remove_small_boxes(x, min_size)
  local where <const> = "boxes.remove_small_boxes"
  config.argument(min_size, "number", where, "min_size")
  local x1, y1, x2, y2 = sides(check(x, where))
  local kept <const> = (x2 - x1):ge(min_size):logical_and((y2 - y1):ge(min_size))
  local out <const> = kept:nonzero():view(-1)
  return out
end

local function check_scores(scores, x, where)
  if not c.is_tensor(scores) or scores.ndim ~= 1 or scores.shape[1] ~= x.shape[1] then
    errors.blame("%s: scores are a tensor [N] for boxes %s: got %s", where, errors.show_shape(x),
      errors.show(scores))
  end
end

-- Boxes on the cpu in falling order of scores, and which they were.
local function suppress(x, scores, threshold)
  local order <const> = scores:detach():to("cpu"):to("f32"):argsort { descending = true }
  local sorted <const> = x:detach():to("cpu"):to("f32")[order]:contiguous()
  local out <const> = order[c.runtime.image.nms(sorted, threshold)]
  return out
end

--- Non-maximum suppression: ids (i64, from 0) of the boxes that are kept, in descending order of
--- scores; boxes whose IoU with a kept box exceeds `iou_threshold` are removed.
---@param x Tensor [N, 4]
---@param scores Tensor [N]
---@param iou_threshold number
function boxes.nms(x, scores, iou_threshold)
  local checked <const> = check(x, "boxes.nms")
  check_scores(scores, checked, "boxes.nms")
  config.argument(iou_threshold, "number", "boxes.nms", "iou_threshold", { min = 0, max = 1 })
  local out <const> = suppress(checked, scores, iou_threshold)
  return out
end

--- The same, separately for boxes of each of the `ids` (classes).
---@param x Tensor [N, 4]
---@param scores Tensor [N]
---@param ids Tensor [N]
---@param iou_threshold number
function boxes.batched_nms(x, scores, ids, iou_threshold)
  local where <const> = "boxes.batched_nms"
  local checked <const> = check(x, where)
  check_scores(scores, checked, where)
  check_scores(ids, checked, where)
  config.argument(iou_threshold, "number", where, "iou_threshold", { min = 0, max = 1 })
  if checked.shape[1] == 0 then return c.zeros(0, { dtype = "i64" }) end
  -- classes are moved so far apart that none overlaps another
  local far <const> = (checked:max() - checked:min()) + 1
  local moved <const> = checked + (ids:to(checked.dtype) * far):unsqueeze(2)
  local out <const> = suppress(moved, scores, iou_threshold)
  return out
end

return strict_arity.all(boxes, "boxes")
