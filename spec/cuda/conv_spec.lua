-- spec/cuda/conv_spec.lua: convolutions of a GPU against the CPU's in f64.
-- tags: slow
--
-- Backends built for specs make columns for few positions at a time: these shapes need many tiles.
-- Their cuDNN takes no odd number of images: each case is run with an even and an odd one.
local both = require "spec.cuda.both"
local lt = require "ltrain"

-- How far a result may be from the exact one, of its largest element.
local NEAR <const> = { f32 = 3e-6, f64 = 1e-13, f16 = 1e-3, bf16 = 8e-3 }

-- x [N, C, H, W], weight [O, C / groups, KH, KW].
local CASES <const> = {
  { "3 x 3", { 2, 3, 9, 11 }, { 5, 3, 3, 3 }, { padding = 1 } },
  { "more images than a tile", { 37, 4, 8, 8 }, { 3, 4, 3, 3 }, { padding = 1, stride = 2 } },
  { "images larger than a tile", { 2, 3, 33, 70 }, { 4, 3, 5, 3 }, { padding = { 2, 1 } } },
  { "more channels than a tile", { 3, 70, 9, 9 }, { 3, 70, 3, 3 }, {} },
  { "strides and dilation by dim", { 2, 4, 17, 13 }, { 6, 4, 2, 3 },
    { stride = { 3, 2 }, padding = { 4, 0 }, dilation = { 2, 3 } } },
  { "a stride beyond the kernel", { 2, 3, 20, 19 }, { 4, 3, 2, 2 }, { stride = { 5, 7 } } },
  { "groups", { 3, 6, 10, 7 }, { 9, 2, 3, 3 }, { padding = 1, groups = 3 } },
  { "groups larger than a tile", { 2, 40, 17, 9 }, { 4, 20, 3, 3 }, { padding = 1, groups = 2 } },
  { "a group a channel", { 2, 33, 9, 8 }, { 33, 1, 3, 3 }, { padding = 1, groups = 33 } },
  { "a group a channel, results of two", { 2, 5, 9, 8 }, { 10, 1, 5, 5 },
    { padding = 2, stride = 2, groups = 5 } },
  { "a group a channel, many tiles of images", { 320, 8, 3, 3 }, { 8, 1, 2, 2 }, { groups = 8 } },
  { "1 x 1", { 5, 7, 6, 6 }, { 33, 7, 1, 1 }, {} },
  { "1 x 1 in groups", { 2, 6, 5, 5 }, { 4, 3, 1, 1 }, { groups = 2 } },
  { "1 x 1 with a stride", { 2, 7, 9, 9 }, { 3, 7, 1, 1 }, { stride = 2 } },
  { "1 x 1 with padding", { 2, 3, 4, 4 }, { 3, 3, 1, 1 }, { padding = 1 } },
  { "a kernel as large as x", { 3, 4, 6, 5 }, { 7, 4, 6, 5 }, {} },
  { "one image, one pixel", { 1, 3, 1, 1 }, { 2, 3, 1, 1 }, {} },
  { "lines", { 2, 3, 1, 257 }, { 4, 3, 1, 9 }, { padding = { 0, 4 } } },
}

-- Those for f64, whose products an own kernel makes: slow where it is emulated.
local SMALL <const> = { ["3 x 3"] = true, groups = true, ["1 x 1 in groups"] = true,
                        ["strides and dilation by dim"] = true }

local function random(size, dtype) return lt.randn(size, { dtype = "f64" }):to(dtype) end

-- Fails unless `got` is `want`, which is in f64 on the CPU, as exactly as its dtype allows.
local function near(what, got, want, scale)
  local off = (got:to("cpu"):to("f64") - want):abs():amax():item()
  local most = want:abs():amax():item() + (scale or 0)
  assert.same(want.shape, got.shape, what)
  assert.is_true(off <= NEAR[got.dtype] * most,
    ("%s: off by %g of %g (%s)"):format(what, off, most, got.dtype))
end

-- The result and the gradients of x, weight and bias on a device; `lay` lays the tensors out.
local function pass(device, dtype, x, weight, bias, g, options, lay)
  local own = {}
  for k, t in ipairs { x, weight, bias or nil } do
    own[k] = lay(t:to(device):to(dtype), k):detach():requires_grad_()
  end
  local y = lt.conv2d(own[1], own[2], own[3], options)
  y:backward(lay(g:to(device):to(dtype), 4))
  local results = { y:detach() }
  for k, t in ipairs(own) do results[k + 1] = t.grad end
  return results
end

local function plain(t) return t end

local function compare_images(case, n, dtype, biased, lay)
  local name, size, w_size, options = table.unpack(case)
  local x_size = { n, size[2], size[3], size[4] }
  lt.seed(3)
  local x, weight = random(x_size, dtype), random(w_size, dtype)
  local bias = biased and random({ w_size[1] }, dtype) or nil
  local shape = lt.conv2d(x:to "f32", weight:to "f32", nil, options).shape
  local g = random(shape, dtype)
  local want = pass("cpu", "f64", x, weight, bias, g, options, plain)
  local got = pass("cuda", dtype, x, weight, bias, g, options, lay)
  assert.equal(#want, #got)
  for k, t in ipairs(want) do near(("%s: %d images: result %d"):format(name, n, k), got[k], t) end
end

local function compare(case, dtype, biased, lay)
  compare_images(case, case[2][1], dtype, biased, lay)
  compare_images(case, case[2][1] + 1, dtype, biased, lay)
end

describe("conv2d on cuda", function()
  for _, dtype in ipairs { "f32", "f64", "f16", "bf16" } do
    both.it("gives the results and gradients of the CPU in " .. dtype, function()
      for k, case in ipairs(CASES) do
        if dtype ~= "f64" or SMALL[case[1]] then compare(case, dtype, k % 2 == 1, plain) end
      end
    end)
  end

  both.it("takes images that lie channels last, or apart", function()
    local function last(t, k)
      if k == 2 or t:dim() < 4 then return t end
      return t:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3)
    end
    local function turned(t)
      if t:dim() < 4 then return lt.stack({ t, t }, { dim = 2 }):select(2, 2) end
      return t:permute(4, 2, 3, 1):contiguous():permute(4, 2, 3, 1)
    end
    for _, case in ipairs(CASES) do
      compare(case, "f32", true, last)
      compare(case, "bf16", true, turned)
    end
  end)

  both.it("takes gradients that are one number everywhere", function()
    both.same_on_both("ones", function(device)
      local x = lt.ones({ 3, 2, 5, 5 }, { device = device }):requires_grad_()
      local w = lt.ones({ 4, 2, 3, 3 }, { device = device }):requires_grad_()
      local b = lt.zeros({ 4 }, { device = device }):requires_grad_()
      lt.conv2d(x, w, b, { padding = 1 }):sum():backward()
      return { x.grad, w.grad, b.grad }
    end)
  end)

  both.it("takes no images, and gives zeros for their gradient", function()
    both.same_on_both("none", function(device)
      local x = lt.ones({ 0, 2, 5, 5 }, { device = device }):requires_grad_()
      local w = lt.ones({ 4, 2, 3, 3 }, { device = device }):requires_grad_()
      local b = lt.ones({ 4 }, { device = device }):requires_grad_()
      local y = lt.conv2d(x, w, b)
      y:sum():backward()
      return { y:detach(), x.grad, w.grad, b.grad }
    end)
  end)

  both.it("lets nan reach only what sees it", function()
    both.same_on_both("nan", function(device)
      local x = lt.ones { 1, 1, 6, 6 }
      x:select(3, 2):select(3, 5):fill_(0 / 0)
      local w = lt.ones({ 1, 1, 3, 3 }, { device = device })
      return lt.conv2d(x:to(device), w, nil, { padding = 1 })
    end)
  end)
end)
