-- spec/boxes/boxes_spec.lua: lt.boxes.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local boxes <const> = lt.boxes

local function random_boxes(n)
  local corner, size = lt.rand(n, 2) * 50, lt.rand(n, 2) * 30
  return lt.cat({ corner, corner + size }, 2)
end

-- By the definition, one pair after the other.
local function iou(a, b)
  local w = math.max(math.min(a[3], b[3]) - math.max(a[1], b[1]), 0)
  local h = math.max(math.min(a[4], b[4]) - math.max(a[2], b[2]), 0)
  local function area(x) return (x[3] - x[1]) * (x[4] - x[2]) end
  local union = area(a) + area(b) - w * h
  local around = (math.max(a[3], b[3]) - math.min(a[1], b[1]))
    * (math.max(a[4], b[4]) - math.min(a[2], b[2]))
  return w * h / union, w * h / union - (around - union) / around
end

describe("boxes", function()
  it("overlap by the definition", function()
    lt.seed(1)
    local a, b = random_boxes(7), random_boxes(9)
    local got, generalized = boxes.box_iou(a, b), boxes.generalized_box_iou(a, b)
    assert.same({ 7, 9 }, got.shape)
    local x, y = a:tolist(), b:tolist()
    for i = 1, 7 do
      for j = 1, 9 do
        local plain, other = iou(x[i], y[j])
        assert(math.abs(got[i][j]:item() - plain) < 1e-5)
        assert(math.abs(generalized[i][j]:item() - other) < 1e-5)
      end
    end
    assert.same({ 6, 0 }, boxes.box_area(lt.tensor { { 1, 1, 3, 4 }, { 2, 2, 2, 9 } }):tolist())
  end)

  it("give gradients", function()
    lt.seed(2)
    local a = lt.parameter(random_boxes(3))
    boxes.generalized_box_iou(a, random_boxes(3)):sum():backward()
    assert(a.grad:abs():sum():item() > 0)
  end)

  it("are converted there and back", function()
    local x = lt.tensor { { 1, 2, 5, 8 }, { 0, 0, 3, 3 } }
    assert.same({ { 1, 2, 4, 6 }, { 0, 0, 3, 3 } }, boxes.box_convert(x, "xyxy", "xywh"):tolist())
    assert.same({ { 3, 5, 4, 6 }, { 1.5, 1.5, 3, 3 } },
      boxes.box_convert(x, "xyxy", "cxcywh"):tolist())
    for _, from in ipairs { "xyxy", "xywh", "cxcywh" } do
      for _, to in ipairs { "xyxy", "xywh", "cxcywh" } do
        assert(lt.equal(x, boxes.box_convert(boxes.box_convert(x, from, to), to, from)))
      end
    end
  end)

  it("are cut, and small ones left out", function()
    local x = lt.tensor { { -3, 2, 5, 80 }, { 7, 7, 8, 9 } }
    assert.same({ { 0, 2, 5, 30 }, { 7, 7, 8, 9 } },
      boxes.clip_boxes_to_image(x, { 30, 40 }):tolist())
    assert.same({ 0 }, boxes.remove_small_boxes(x, 2):tolist())
  end)

  it("are suppressed by those of higher scores", function()
    lt.seed(3)
    local x, scores = random_boxes(60), lt.rand(60)
    local list, order = x:tolist(), scores:argsort { descending = true }:tolist()
    for _, threshold in ipairs { 0, 0.2, 0.5, 1 } do
      local kept = {}
      for _, i in ipairs(order) do
        local free = true
        for _, k in ipairs(kept) do
          free = free and iou(list[i + 1], list[k + 1]) <= threshold
        end
        if free then kept[#kept + 1] = i end
      end
      assert.same(kept, boxes.nms(x, scores, threshold):tolist())
    end
    local none = boxes.nms(lt.zeros(0, 4), lt.zeros(0), 0.5)
    assert.same({ 0 }, none.shape)
    assert.equal("i64", none.dtype)
  end)

  it("are suppressed by those of their class alone", function()
    local x = lt.tensor { { 0, 0, 9, 9 }, { 0, 0, 9, 8 }, { 1, 0, 9, 9 } }
    local scores, ids = lt.tensor { 0.5, 0.9, 0.7 }, lt.tensor { 0, 1, 0 }
    assert.same({ 1 }, boxes.nms(x, scores, 0.5):tolist())
    assert.same({ 1, 2 }, boxes.batched_nms(x, scores, ids, 0.5):tolist())
    assert.same({ 0 }, boxes.batched_nms(lt.zeros(0, 4), lt.zeros(0), lt.zeros(0), 0.5).shape)
  end)

  it("are checked", function()
    local x = lt.zeros(2, 4)
    local function fails(text, ...) assert.matches(text, error_of(...), 1, true) end
    fails("boxes.box_iou: boxes are a tensor [N, 4]: got a tensor [3]", boxes.box_iou, x,
      lt.zeros(3))
    fails("boxes.nms: scores are a tensor [N] for boxes [2, 4]: got a tensor [3]", boxes.nms, x,
      lt.zeros(3), 0.5)
    fails("boxes.nms: iou_threshold must be at most 1: got 2", boxes.nms, x, lt.zeros(2), 2)
    fails("boxes.box_convert: in_fmt must be 'xyxy', 'xywh' or 'cxcywh': got 'xyhw'",
      boxes.box_convert, x, "xyhw", "xyxy")
  end)
end)
