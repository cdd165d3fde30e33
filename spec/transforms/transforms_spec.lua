-- spec/transforms/transforms_spec.lua: draws, samples of fields, parts, what is refused.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local T <const> = lt.transforms

local function picture(h, w, channels)
  lt.seed(1)
  return lt.randint(0, 256, { channels or 3, h or 20, w or 30 }):to "u8"
end

-- What n calls give, as a list.
local function many(n, fn)
  local list = {}
  for k = 1, n do list[k] = fn(k) end
  return list
end

-- In how many of a thousand calls something is different.
local function share(transform, image)
  local changed = 0
  for _ = 1, 1000 do
    if not lt.equal(transform(image), image) then changed = changed + 1 end
  end
  return changed / 1000
end

describe("a transform", function()
  it("draws by the script's seed", function()
    local image = picture()
    for _, t in ipairs { T.RandomResizedCrop(7), T.RandAugment {}, T.TrivialAugmentWide {},
        T.RandomErasing { p = 1, value = "random" }, T.ColorJitter { hue = 0.4, contrast = 0.5 },
        T.RandomAffine(40, { shear = 20, scale = { 0.5, 2 }, translate = { 0.3, 0.2 } }),
        T.RandomPerspective { p = 1 }, T.RandomCrop(9), T.GaussianBlur(3) } do
      lt.seed(4)
      local first = many(6, function() return t(image) end)
      lt.seed(4)
      local again = many(6, function() return t(image) end)
      local differ = false
      for k = 1, 6 do
        assert(lt.equal(first[k], again[k]))
        differ = differ or not lt.equal(first[k], first[1])
      end
      assert(differ, tostring(t))
    end
  end)

  it("is done as often as p says", function()
    lt.seed(2)
    local image = picture(3, 4)
    for _, p in ipairs { 0, 0.3, 1 } do
      for _, t in ipairs { T.RandomHorizontalFlip { p = p }, T.RandomInvert { p = p },
          T.RandomApply({ T.RandomVerticalFlip { p = 1 } }, { p = p }),
          T.RandomErasing { p = p, scale = { 0.2, 0.2 }, ratio = { 1, 1 }, value = 3 } } do
        local often = share(t, image)
        assert(math.abs(often - p) < 0.06, ("%s: %g of %g"):format(t, often, p))
      end
    end
  end)

  it("leaves the image that it gets as it is", function()
    local image = picture()
    local copy = image:clone()
    T.Compose { T.RandomHorizontalFlip { p = 1 }, T.RandomInvert { p = 1 }, T.ToTensor(),
      T.Normalize({ 0.5 }, { 0.5 }), T.RandomErasing { p = 1 } }(image)
    assert(lt.equal(copy, image))
    local float = image:to "f32" / 255
    local before = float:clone()
    T.Compose { T.RandomInvert { p = 1 }, T.Normalize({ 0.5 }, { 0.5 }) }(float)
    assert(lt.equal(before, float))
  end)

  it("takes views", function()
    local image = picture():transpose(2, 3):flip(3)
    assert(lt.equal(T.Resize { 9, 7 }(image), T.Resize { 9, 7 }(image:contiguous())))
    local float = image:to "f32"
    assert(lt.equal(T.Resize { 9, 7 }(float), T.Resize { 9, 7 }(float:contiguous())))
  end)
end)

describe("crops", function()
  it("are parts of the image, from all over it", function()
    local x = lt.arange(12):view(1, 1, 12):expand(1, 6, 12)
    local y = lt.arange(6):view(1, 6, 1):expand(1, 6, 12)
    local image = lt.cat { x, y, x }:to "u8"
    local seen, t = {}, T.RandomCrop { 4, 5 }
    for _ = 1, 300 do
      local crop = t(image)
      local left, top = crop[1][1][1]:item(), crop[2][1][1]:item()
      assert(lt.equal(crop, image[{ lt.all, { top + 1, top + 4 }, { left + 1, left + 5 } }]))
      seen[top * 100 + left] = true
    end
    for top = 0, 2 do
      for left = 0, 7 do assert(seen[top * 100 + left], ("%d, %d"):format(top, left)) end
    end
  end)

  it("pad before, or where the image is small", function()
    local image = lt.ones(1, 4, 4, { dtype = "u8" })
    local sum = 0
    for _ = 1, 200 do
      local crop = T.RandomCrop(4, { padding = 2, fill = 9 })(image)
      sum = sum + crop:eq(9):to "f32":mean():item()
    end
    assert(sum / 200 > 0.3 and sum / 200 < 0.7, sum / 200)
    assert.same({ 1, 7, 4 }, T.RandomCrop({ 7, 4 }, { pad_if_needed = true })(image).shape)
    assert.matches("transforms.RandomCrop: a crop of 5 x 5 of an image of 4 x 4",
      error_of(T.RandomCrop(5), image), 1, true)
  end)

  it("of random size cover the area and shape that they are told", function()
    local x = lt.arange(200):view(1, 1, 200):expand(1, 200, 200)
    local image = lt.cat { x, x:transpose(2, 3), x }:to "u8"
    local areas = 0
    for _ = 1, 300 do
      local crop = T.RandomResizedCrop(50, { scale = { 0.2, 0.4 }, ratio = { 0.5, 2 },
        interpolation = "nearest" })(image):to "f32"
      local w = (crop[1][1][50] - crop[1][1][1]):item() * 50 / 49
      local h = (crop[2][50][1] - crop[2][1][1]):item() * 50 / 49
      local area = w * h / 40000
      assert(area > 0.17 and area < 0.44, area)
      assert(w / h > 0.44 and w / h < 2.25, w / h)
      areas = areas + area
    end
    assert(math.abs(areas / 300 - 0.3) < 0.02, areas / 300)
  end)
end)

describe("a sample of fields", function()
  -- An image, a mask and a box that show the same rectangle.
  local function sample()
    local image, mask = lt.zeros(3, 24, 32, { dtype = "u8" }), lt.zeros(24, 32, { dtype = "i64" })
    image[{ lt.all, { 6, 15 }, { 11, 26 } }]:fill_(200)
    mask[{ { 6, 15 }, { 11, 26 } }]:fill_(300)
    return { image = image, mask = mask, boxes = lt.tensor { { 10, 5, 26, 15 } }, id = "seven" }
  end

  local function box_of(mask)
    local rows = mask:sum(2):nonzero()
    local columns = mask:sum(1):nonzero()
    if rows.shape[1] == 0 then return nil end
    return { columns:min():item(), rows:min():item(), columns:max():item() + 1,
      rows:max():item() + 1 }
  end

  it("moves together", function()
    local checked = 0
    for _, t in ipairs { T.Resize { 48, 16 }, T.RandomHorizontalFlip { p = 1 },
        T.RandomVerticalFlip { p = 1 }, T.CenterCrop { 18, 20 }, T.RandomCrop { 14, 20 },
        T.Pad { 1, 2, 3, 4 }, T.RandomResizedCrop { 60, 60 }, T.CenterCrop(40),
        T.RandomRotation({ 90, 90 }, { expand = true }), T.RandomRotation { 180, 180 },
        T.RandomAffine(0, { translate = { 0.2, 0.2 } }),
        T.RandomAffine(0, { scale = { 1.5, 1.5 } }) } do
      for _ = 1, 6 do
        local out = t(sample())
        assert.equal("seven", out.id)
        assert.equal("i64", out.mask.dtype)
        assert.same({ out.image.shape[2], out.image.shape[3] }, out.mask.shape)
        local lit = out.image[1]:gt(100):to "i64"
        local apart = (lit - out.mask:gt(0):to "i64"):abs():to "f32":mean():item()
        assert(apart < 0.06, ("%s: image and mask: %g"):format(t, apart))
        local box, seen = out.boxes[1]:tolist(), box_of(out.mask)
        for k = 1, seen and 4 or 0 do
          assert(math.abs(box[k] - seen[k]) <= 1.6, ("%s: side %d: %g for %g"):format(t, k, box[k],
            seen[k]))
          checked = checked + 1
        end
      end
    end
    assert(checked > 200)
  end)

  it("has boxes around what is turned, cut where the image ends", function()
    local out = T.RandomRotation({ 45, 45 })(sample())
    local box, seen = out.boxes[1]:tolist(), box_of(out.mask)
    for k = 1, 4 do
      local outside = (k <= 2 and seen[k] - box[k] or box[k] - seen[k])
      assert(outside > -1.6 and outside < 4, outside)
      assert(box[k] >= 0 and box[k] <= (k % 2 == 1 and 32 or 24))
    end
  end)

  it("keeps ids of masks, and colours are not theirs", function()
    local out = T.Compose { T.Resize { 7, 9 }, T.ColorJitter { brightness = { 2, 2 } },
      T.RandomRotation({ 20, 20 }, { interpolation = "bilinear" }), T.ToTensor() }(sample())
    for _, id in ipairs(out.mask:view(-1):tolist()) do assert(id == 0 or id == 300, id) end
    assert.equal("f32", out.image.dtype)
    local masks = sample()
    masks.mask = lt.stack { masks.mask, masks.mask }:to "u8"
    assert.same({ 2, 5, 6 }, T.Resize { 5, 6 }(masks).mask.shape)
  end)

  it("goes through functions of a chain whole", function()
    local t = T.Compose { T.RandomHorizontalFlip { p = 1 }, function(s)
      s.seen = s.boxes[1]:tolist()
      return s
    end, T.CenterCrop(10) }
    assert.same({ 6, 5, 22, 15 }, t(sample()).seen)
  end)

  it("refuses fields that do not fit", function()
    local t = T.Resize(5)
    local function fails(text, value)
      assert.matches(text, error_of(t, value), 1, true)
    end
    fails("transforms: a sample has a field 'image': got a table without", { mask = 1 })
    fails("transforms: an image is a tensor [C, H, W]: got a tensor [2, 2]", lt.zeros(2, 2))
    fails("transforms: an image is u8 or f32 with 1 to 4 channels: got f64",
      lt.zeros(1, 2, 2):to "f64")
    fails("transforms: a mask is a tensor of integers [H, W] with the sides of the image [3, 4, 5]",
      { image = lt.zeros(3, 4, 5), mask = lt.zeros(5, 4):to "u8" })
    fails("transforms: boxes are a tensor [N, 4] of x1, y1, x2, y2: got a tensor [4]",
      { image = lt.zeros(3, 4, 5), boxes = lt.zeros(4) })
  end)
end)

describe("Compose, RandomApply and RandomChoice", function()
  it("run functions too", function()
    local image = picture(4, 4)
    local function twice(x) return x * 2 end
    local float = image:to "f32"
    assert(lt.equal(float * 2 + 1, T.Compose { T.ToDtype "f32", twice,
      function(x) return x + 1 end }(image)))
    lt.seed(3)
    local often = share(T.RandomApply({ twice }, { p = 0.25 }), float)
    assert(math.abs(often - 0.25) < 0.06, often)
    often = share(T.RandomChoice({ twice, T.Pad(0) }, { p = { 1, 4 } }), float)
    assert(math.abs(often - 0.2) < 0.06, often)
  end)

  it("choose by weights, one for each call", function()
    local image = lt.zeros(1, 4, 4, { dtype = "u8" })
    local t = T.RandomChoice({ T.Pad(1), T.Compose { T.Pad(1), T.Pad(1) }, T.Pad(3) },
      { p = { 1, 2, 0 } })
    local count = { [6] = 0, [8] = 0, [10] = 0 }
    for _ = 1, 1000 do
      local side = t(image).shape[2]
      count[side] = count[side] + 1
    end
    assert.equal(0, count[10])
    assert(math.abs(count[6] / 1000 - 1 / 3) < 0.06, count[6])
  end)

  it("nest, and nothing changes nothing", function()
    local image = picture(4, 4)
    assert(lt.equal(image, T.Compose {}(image)))
    local t = T.RandomApply({ T.RandomApply({ T.RandomChoice { T.RandomInvert { p = 1 } } },
      { p = 0.5 }), T.RandomHorizontalFlip { p = 0 } }, { p = 0.5 })
    assert(math.abs(share(t, image) - 0.25) < 0.06)
  end)
end)

describe("RandAugment", function()
  it("stays as it is of strength 0, but for what knows no strength", function()
    local image = picture()
    local same = 0
    for _ = 1, 200 do
      local out = T.RandAugment { num_ops = 1, magnitude = 0 }(image)
      same = same + (lt.equal(out, image) and 1 or 0)
    end
    assert(same > 150 and same < 200, same) -- equalize and autocontrast change it
    assert(share(T.RandAugment { magnitude = 20 }, picture(8, 8)) > 0.8)
  end)

  it("takes u8 of 1 or 3 channels", function()
    assert.matches("transforms.RandAugment: an image is u8: got f32",
      error_of(T.RandAugment {}, lt.zeros(3, 4, 4)), 1, true)
    assert.matches("transforms.TrivialAugmentWide: an image has 1 or 3 channels: got 2",
      error_of(T.TrivialAugmentWide {}, lt.zeros(2, 4, 4):to "u8"), 1, true)
  end)
end)

describe("RandomErasing", function()
  it("fills a rectangle, inside of the image", function()
    local image = lt.ones(3, 30, 40)
    for _ = 1, 50 do
      local out = T.RandomErasing { p = 1, value = { 5, 6, 7 } }(image)
      local erased = out[1]:eq(5)
      local part = erased:to "f32":mean():item()
      assert(part > 0.01 and part < 0.36, part)
      assert(lt.equal(erased, out[3]:eq(7)))
      local rows, columns = erased:to "f32":sum(2), erased:to "f32":sum(1)
      assert(math.abs(rows:max():item() * columns:max():item() - part * 1200) < 0.01)
    end
    local noise = T.RandomErasing { p = 1, value = "random", scale = { 0.3, 0.3 } }(image)
    local drawn = noise[noise:ne(1)]
    assert(math.abs(drawn:mean():item()) < 0.2 and math.abs(drawn:std():item() - 1) < 0.2)
  end)
end)

describe("arguments of transforms", function()
  it("are checked", function()
    local function fails(text, fn, ...)
      local message = error_of(function(f, ...) f(...) return end, fn, ...)
      assert.matches("^spec/transforms/transforms_spec.lua:%d+: ", message)
      assert.matches(text, message, 1, true)
    end
    fails("transforms.Resize: size must be an integer or {height, width}: got 'a'", T.Resize, "a")
    fails("transforms.Resize: max_size is for one side, and above it: got 5", T.Resize, 5,
      { max_size = 5 })
    fails("transforms.RandomHorizontalFlip: p must be at most 1: got 2", T.RandomHorizontalFlip,
      { p = 2 })
    fails("transforms.RandomResizedCrop: scale must be {low, high}: got {1, 0.5}",
      T.RandomResizedCrop, 5, { scale = { 1, 0.5 } })
    fails("transforms.ColorJitter: hue must be at least -0.5: got -0.7", T.ColorJitter,
      { hue = 0.7 })
    fails("transforms.GaussianBlur: kernel_size must be odd, at most 255: got 4",
      T.GaussianBlur, 4)
    fails("transforms.Normalize: 3 means and 1 deviations", T.Normalize, { 1, 2, 3 }, { 1 })
    fails("transforms.Normalize: std must not be 0", T.Normalize, { 1 }, { 0 })
    fails("transforms.Compose: entry 2 must be a transform or a function: got 5", T.Compose,
      { T.ToTensor(), 5 })
    fails("transforms.RandomChoice: p must be 1 numbers: got", T.RandomChoice, { T.ToTensor() },
      { p = { 1, 2 } })
    fails("transforms: there is no 'RandomFlip'", function() return T.RandomFlip end)
  end)

  it("of images are checked when they are there", function()
    local u8 = picture(6, 6)
    assert.matches('transforms.Normalize: an image is f32: got u8: put ToDtype("f32", '
      .. "{scale = true}) before it", error_of(T.Normalize({ 1 }, { 1 }), u8), 1, true)
    assert.matches("transforms.Normalize: 2 means for 3 channels",
      error_of(T.Normalize({ 1, 2 }, { 1, 2 }), u8:to "f32"), 1, true)
    assert.matches("transforms.ColorJitter: an image has 1 or 3 channels: got 4",
      error_of(T.ColorJitter { hue = 0.1 }, lt.zeros(4, 2, 2)), 1, true)
    assert.matches("transforms.GaussianBlur: a kernel of 13 x 13 for an image of 6 x 6",
      error_of(T.GaussianBlur(13), u8), 1, true)
    assert.matches("transforms: padding makes -2 x -2 of 6 x 6", error_of(T.Pad(-4), u8), 1, true)
    assert.matches("an image without pixels has no edge to repeat",
      error_of(T.Pad(2, { padding_mode = "symmetric" }), lt.zeros(3, 0, 4)), 1, true)
    assert.matches("an image without pixels cannot be resized",
      error_of(T.Resize { 2, 2 }, lt.zeros(3, 0, 4)), 1, true)
  end)
end)
