-- spec/ops/images_spec.lua: interpolate, affine_grid, grid_sample, pixel_shuffle and embedding_bag,
-- which stdlib/ops composes; spec/parity compares them with PyTorch.
-- tags: slow
local error_of = require "spec.error_of"
local lt = require "ltrain"

local F <const> = lt.nn.functional

local function list(x) return x:flatten():tolist() end
local function near(want, got)
  assert.equal(#want, got:numel())
  for k, v in ipairs(list(got)) do assert.near(want[k], v, 1e-5) end
end
local function ids(values) return lt.tensor(values, {dtype = "i64"}) end
local function leaf(...) return lt.randn({...}, "f64"):requires_grad_() end

describe("interpolate", function()
  local x = lt.tensor{{{1.0, 2.0, 4.0}}}
  it("is a function, a method and one of nn.functional", function()
    assert.equal(lt.interpolate, F.interpolate)
    assert.same(list(lt.interpolate(x, {size = 5})), list(x:interpolate{size = 5}))
  end)

  it("repeats the nearest elements", function()
    near({1, 1, 2, 2, 4, 4}, x:interpolate{scale_factor = 2})
    near({1, 1, 2, 4}, x:interpolate{size = 4})
    near({1, 2, 2, 4}, x:interpolate{size = 4, mode = "nearest-exact"})
    assert.equal("u8", x:to "u8":interpolate{size = 4}.dtype)
  end)

  it("draws lines between the centres of elements, or between those of the corners", function()
    near({1, 1.25, 1.75, 2.5, 3.5, 4}, x:interpolate{scale_factor = 2, mode = "linear"})
    near({1, 1.5, 2, 3, 4}, x:interpolate{size = 5, mode = "linear", align_corners = true})
  end)

  it("takes means of areas, and with antialias of all of a larger image", function()
    near({1.5, 3}, x:interpolate{size = 2, mode = "area"})
    local image = lt.tensor{{{{0.0, 0.0, 8.0, 8.0}}}}:expand(1, 1, 4, 4)
    -- triangles as wide as an output, cut at the border: weights 3, 3, 1 of 7
    near({8 / 7, 48 / 7, 8 / 7, 48 / 7},
      image:interpolate{size = 2, mode = "bilinear", antialias = true})
  end)

  it("is the same in parts where a dim is long", function()
    local values = lt.randn(600)
    local y = values:view(1, 1, 600):interpolate{size = 900, mode = "linear"}
    for o = 0, 899, 7 do
      local at = math.max((o + 0.5) * 600 / 900 - 0.5, 0)
      local low = math.min(math.floor(at), 598)
      local a, b = values[low + 1]:item(), values[low + 2]:item()
      assert.near(a + math.min(at - low, 1) * (b - a), y[{1, 1, o + 1}]:item(), 1e-4)
    end
  end)

  it("gives the dtype of x, halves computed in f32, within autocast too", function()
    local image = lt.randn(1, 1, 5, 5)
    local want = image:interpolate{size = 7, mode = "bicubic"}
    assert.equal("bf16", image:to "bf16":interpolate{size = 7, mode = "bicubic"}.dtype)
    lt.autocast("bf16", function()
      assert.same(list(want), list(image:interpolate{size = 7, mode = "bicubic"}))
    end)
  end)

  it("returns its own memory where nothing changes", function()
    local y = x:interpolate{size = 3}
    y:fill_(0)
    assert.same({1, 2, 4}, list(x))
  end)

  it("has first and second derivatives", function()
    for mode, shape in pairs{nearest = {1, 2, 3}, linear = {1, 2, 3}, bilinear = {1, 1, 2, 3},
      bicubic = {1, 1, 2, 2}, area = {1, 1, 3, 2}, trilinear = {1, 1, 2, 1, 2}} do
      local function f(v) return v:interpolate{size = 3, mode = mode} end
      assert(lt.gradcheck(f, {leaf(table.unpack(shape))}))
      assert(lt.gradgradcheck(f, {leaf(table.unpack(shape))}))
    end
  end)

  it("refuses what does not fit", function()
    assert.matches("interpolate: needs size or scale_factor$",
      error_of(x.interpolate, x))
    assert.matches("interpolate: needs size or scale_factor, got both",
      error_of(x.interpolate, x, {size = 2, scale_factor = 2}))
    assert.matches("interpolate: mode 'bilinear' needs x with 4 dims .*: got %[1, 1, 3%]",
      error_of(x.interpolate, x, {size = 2, mode = "bilinear"}))
    assert.matches("align_corners is an option of the linear and cubic modes: got mode 'area'",
      error_of(x.interpolate, x, {size = 2, mode = "area", align_corners = true}))
    assert.matches("antialias is an option of modes 'bilinear' and 'bicubic': got mode 'linear'",
      error_of(x.interpolate, x, {size = 2, mode = "linear", antialias = true}))
    assert.matches("size has 2 numbers for the 1 dims of %[1, 1, 3%] after the first two",
      error_of(x.interpolate, x, {size = {2, 2}}))
    assert.matches("scale_factor must be positive: got 0",
      error_of(x.interpolate, x, {scale_factor = 0}))
    assert.matches("scale_factor = 0.1 leaves nothing of %[1, 1, 3%]",
      error_of(x.interpolate, x, {scale_factor = 0.1}))
    assert.matches("x must be a floating tensor, got i64",
      error_of(lt.interpolate, x:to "i64", {size = 2, mode = "linear"}))
    assert.matches("recompute_scale_factor is an option of scale_factor",
      error_of(x.interpolate, x, {size = 2, recompute_scale_factor = true}))
  end)
end)

describe("grid_sample", function()
  local image = lt.tensor{{{{1.0, 2.0}, {3.0, 4.0}}}}

  it("reads an image at the positions of an identity of affine_grid", function()
    local theta = lt.tensor{{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}}
    for _, align_corners in ipairs{true, false} do
      local grid = theta:affine_grid({1, 1, 2, 2}, {align_corners = align_corners})
      local edge = align_corners and 1 or 0.5
      near({-edge, -edge, edge, -edge, -edge, edge, edge, edge}, grid)
      for _, mode in ipairs{"bilinear", "nearest", "bicubic"} do
        near({1, 2, 3, 4}, image:grid_sample(grid, {mode = mode, align_corners = align_corners}))
      end
    end
  end)

  it("has zeros, the border or a reflection outside", function()
    local at = lt.tensor{{{{-2.0, -0.5}}}} -- a pixel and a half to the left of the first one
    near({0}, image:grid_sample(at))
    near({1}, image:grid_sample(at, {padding_mode = "border"}))
    near({1.5}, image:grid_sample(at, {padding_mode = "reflection"}))
    near({0.5}, image:grid_sample(lt.tensor{{{{-1.0, -0.5}}}}))
  end)

  it("survives positions that are not numbers", function()
    local at = lt.tensor{{{{0 / 0, 1 / 0}}}}
    for _, mode in ipairs{"bilinear", "nearest", "bicubic"} do
      for _, padding_mode in ipairs{"zeros", "border", "reflection"} do
        assert.equal(1, image:grid_sample(at, {mode = mode, padding_mode = padding_mode}):numel())
      end
    end
  end)

  for mode, padding_modes in pairs{bilinear = {"zeros", "border", "reflection"},
    bicubic = {"reflection"}} do
    it("has first and second derivatives by image and positions, " .. mode, function()
      for _, padding_mode in ipairs(padding_modes) do
        local function f(x, at) return x:grid_sample(at, {mode = mode, padding_mode = padding_mode})
        end
        local at = lt.tensor({{{{0.31, -0.43}}}}, {dtype = "f64"}):requires_grad_()
        assert(lt.gradcheck(f, {leaf(1, 1, 3, 2), at}))
        assert(lt.gradgradcheck(f, {leaf(1, 1, 2, 3), at}))
      end
    end)
  end

  it("has derivatives by volumes and by what affine_grid is given", function()
    local at = lt.tensor({{{{{0.31, -0.43, 0.2}}}}}, {dtype = "f64"}):requires_grad_()
    assert(lt.gradcheck(lt.grid_sample, {leaf(1, 1, 2, 2, 2), at}))
    assert(lt.gradgradcheck(function(theta) return theta:affine_grid{1, 1, 2, 3} end,
      {leaf(1, 2, 3)}))
  end)

  it("refuses shapes that do not fit", function()
    assert.matches("grid_sample: needs x .*: got %[1, 1, 2, 2%] and %[1, 2, 2%]",
      error_of(image.grid_sample, image, lt.zeros(1, 2, 2)))
    assert.matches("x and grid must have one dtype: got f32 and f64",
      error_of(image.grid_sample, image, lt.zeros(1, 1, 1, 2, {dtype = "f64"})))
    assert.matches("mode 'bicubic' is for images %[N, C, H, W%]: got %[1, 1, 2, 2, 2%]",
      error_of(lt.grid_sample, lt.zeros(1, 1, 2, 2, 2), lt.zeros(1, 1, 1, 1, 3),
        {mode = "bicubic"}))
    assert.matches("affine_grid: theta must be %[1, 2, 3%] for this size: got %[2, 2, 3%]",
      error_of(lt.affine_grid, lt.zeros(2, 2, 3), {1, 1, 2, 2}))
    assert.matches("affine_grid: size must be {N, C, H, W} or {N, C, D, H, W}: got 3 numbers",
      error_of(lt.affine_grid, lt.zeros(1, 2, 3), {1, 2, 2}))
  end)
end)

describe("pixel_shuffle", function()
  it("makes pixels of channels, and pixel_unshuffle the reverse", function()
    local x = lt.arange(8):view(4, 1, 2)
    assert.same({0, 2, 1, 3, 4, 6, 5, 7}, list(x:pixel_shuffle(2)))
    assert.same({1, 2, 4}, x:pixel_shuffle(2).shape)
    assert.same(list(x), list(x:pixel_shuffle(2):pixel_unshuffle(2)))
    assert.same({0, 2, 1, 3}, list(lt.arange(4):view(1, 4, 1):channel_shuffle(2)))
  end)

  it("has first and second derivatives", function()
    for _, f in ipairs{function(x) return x:pixel_shuffle(2) end,
      function(x) return x:pixel_unshuffle(2) end, function(x) return x:channel_shuffle(2) end} do
      assert(lt.gradcheck(f, {leaf(1, 4, 2, 2)}))
      assert(lt.gradgradcheck(f, {leaf(1, 4, 2, 2)}))
    end
  end)

  it("refuses shapes that do not fit", function()
    assert.matches("pixel_shuffle: the channels of %[3, 1, 2%] must be a multiple of 4",
      error_of(lt.pixel_shuffle, lt.zeros(3, 1, 2), 2))
    assert.matches("pixel_unshuffle: height and width of %[3, 1, 2%] must be multiples of 2",
      error_of(lt.pixel_unshuffle, lt.zeros(3, 1, 2), 2))
    assert.matches("channel_shuffle: x must be %[N, C, ...%] with a multiple of 2 channels",
      error_of(lt.channel_shuffle, lt.zeros(1, 3, 2), 2))
    assert.matches("pixel_shuffle: upscale_factor must be at least 1: got 0",
      error_of(lt.pixel_shuffle, lt.zeros(4, 1, 2), 0))
  end)
end)

describe("embedding_bag", function()
  local weight = lt.tensor{{1.0, 8.0}, {2.0, 4.0}, {6.0, 2.0}}

  it("sums, averages or takes maxima of rows of ids", function()
    local at = ids{{0, 2}, {1, 1}}
    near({7, 10, 4, 8}, weight:embedding_bag(at, {mode = "sum"}))
    near({3.5, 5, 2, 4}, weight:embedding_bag(at))
    near({6, 8, 2, 4}, weight:embedding_bag(at, {mode = "max"}))
    near({-4, 14, 6, 12}, weight:embedding_bag(at,
      {mode = "sum", per_sample_weights = lt.tensor{{2.0, -1.0}, {1.0, 2.0}}}))
  end)

  it("takes bags of any length by their offsets; an empty one gives zeros", function()
    local at, offsets = ids{0, 2, 1}, ids{0, 2, 2}
    near({3.5, 5, 0, 0, 2, 4}, weight:embedding_bag(at, {offsets = offsets}))
    near({6, 8, 0, 0, 2, 4}, weight:embedding_bag(at, {offsets = offsets, mode = "max"}))
    near({3.5, 5, 2, 4}, weight:embedding_bag(at,
      {offsets = ids{0, 2, 3}, include_last_offset = true}))
  end)

  it("takes maxima of bags of about one size and of one that is much larger", function()
    for _, sizes in ipairs{{3, 5, 0, 4}, {100, 1, 0, 2, 1, 1, 3, 0, 1}} do
      local w, begins, n = lt.randn(50, 4), {}, 0
      for k, size in ipairs(sizes) do begins[k], n = n, n + size end
      local at = lt.randint(0, 50, {n})
      local got = w:embedding_bag(at, {offsets = ids(begins), mode = "max"})
      for k, size in ipairs(sizes) do
        local want = size > 0 and w:embedding(at:narrow(1, begins[k] + 1, size)):max(1)
          or lt.zeros(4)
        assert.same(want:tolist(), got[k]:tolist())
      end
    end
  end)

  it("adds rows of any width", function()
    for _, dim in ipairs{1, 63, 64, 65, 200} do
      local w, at = lt.randn(20, dim), lt.randint(0, 20, {5, 3})
      near(list(w:embedding(at):sum(2)), w:embedding_bag(at, {mode = "sum"}))
      near(list(w:embedding(at):mean(2)), w:embedding_bag(at))
    end
  end)

  it("does not count padding_idx", function()
    for _, offsets in ipairs{false, ids{0, 2}} do
      local at = offsets and ids{0, 2, 2, 2} or ids{{0, 2}, {2, 2}}
      for mode, first in pairs{sum = {1, 8}, mean = {1, 8}, max = {1, 8}} do
        near({first[1], first[2], 0, 0}, weight:embedding_bag(at,
          {offsets = offsets or nil, mode = mode, padding_idx = 2}))
      end
    end
  end)

  it("has first and second derivatives", function()
    for _, mode in ipairs{"sum", "mean", "max"} do
      for _, offsets in ipairs{false, ids{0, 3}} do
        local at = offsets and ids{0, 1, 1, 2} or ids{{0, 1}, {1, 2}}
        local function f(w)
          return w:embedding_bag(at, {offsets = offsets or nil, mode = mode, padding_idx = 2})
        end
        assert(lt.gradcheck(f, {leaf(3, 2)}))
        assert(lt.gradgradcheck(f, {leaf(3, 2)}))
      end
    end
    assert(lt.gradgradcheck(function(w, factors)
      return w:embedding_bag(ids{0, 1, 1}, {offsets = ids{0, 1}, mode = "sum",
        per_sample_weights = factors})
    end, {leaf(3, 2), leaf(3)}))
  end)

  it("refuses what does not fit", function()
    local function refused(text, ...)
      assert.matches("embedding_bag: " .. text,
        error_of(lt.embedding_bag, weight, ...))
    end
    refused("ids %[N%] need offsets, ids %[B, N%] take none: got ids %[1%]", ids{0})
    refused("per_sample_weights are for mode 'sum': got mode 'mean'", ids{{0}},
      {per_sample_weights = lt.zeros(1, 1)})
    refused("padding_idx must be an id in 0..2: got 3", ids{{0}}, {padding_idx = 3})
    refused("include_last_offset is an option of offsets", ids{{0}}, {include_last_offset = true})
  end)

  it("refuses offsets that are none", function()
    assert.matches("embedding_bag: the first offset must be 0: got 1",
      error_of(lt.embedding_bag, weight, ids{0, 1}, {offsets = ids{1}}))
    assert.matches("embedding_bag: offsets must ascend to at most 2: got 3 after 0",
      error_of(lt.embedding_bag, weight, ids{0, 1}, {offsets = ids{0, 3}}))
  end)
end)
