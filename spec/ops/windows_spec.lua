-- spec/ops/windows_spec.lua: convolutions, pooling and pad: what random calls beside PyTorch
-- (spec/parity/windows.lua) do not show: the smallest examples, dtypes, layouts, errors.
local lt = require "ltrain"

local function list(t) return t:tolist() end
local function error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(message)
end
local function near(wanted, got, bound)
  assert.same(wanted.shape, got.shape)
  assert.is_true((wanted:to "f64" - got:to "f64"):abs():max():item() <= (bound or 1e-5))
end

describe("pad", function()
  local x = lt.tensor { 1.0, 2, 3, 4 }

  it("adds a value, or elements by its mode", function()
    assert.same({ 0, 1, 2, 3, 4, 0, 0 }, list(x:pad(1, 2)))
    assert.same({ 7, 7, 1, 2, 3, 4 }, list(x:pad({ 2, 0 }, { value = 7 })))
    assert.same({ 3, 2, 1, 2, 3, 4, 3 }, list(x:pad({ 2, 1 }, { mode = "reflect" })))
    assert.same({ 1, 1, 1, 2, 3, 4, 4 }, list(x:pad({ 2, 1 }, "replicate")))
    assert.same({ 3, 4, 1, 2, 3, 4, 1 }, list(x:pad({ 2, 1 }, "circular")))
  end)

  it("begins with the last dim, and crops by negative numbers", function()
    local m = lt.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
    assert.same({ { 2, 3, 0 }, { 5, 6, 0 }, { 0, 0, 0 } }, list(m:pad { -1, 1, 0, 1 }))
    assert.equal("i64", m:pad({ 1, 1 }).dtype)
    assert.same({ { 5 } }, list(m:pad { -1, -1, -1, 0 }))
  end)

  it("gives a gradient to each element as often as it is there", function()
    local v = lt.ones(4):requires_grad_()
    v:pad({ 2, 1 }, "reflect"):sum():backward()
    assert.same({ 1, 2, 3, 1 }, list(v.grad))
  end)

  it("of nothing adds all the same", function()
    for _, value in ipairs { 0, 7 } do
      local nothing = lt.ones(2, 0):requires_grad_()
      local y = nothing:pad({ 1, 1 }, { value = value })
      assert.same({ { value, value }, { value, value } }, list(y:detach()))
      y:sum():backward()
      assert.same({ 2, 0 }, nothing.grad.shape)
    end
  end)

  it("names what does not fit", function()
    assert.matches("pad: {4, 0} does not fit dim 1 of %[4%], of which it reflects elements",
      error_of(x.pad, x, { 4, 0 }, "reflect"))
    assert.matches("pad: {%-3, %-2} does not fit dim 1 of %[4%]", error_of(x.pad, x, { -3, -2 }))
    assert.matches("pad: needs 2 numbers for each dim, at most 2 for %[4%], got 3",
      error_of(x.pad, x, { 1, 1, 1 }))
  end)
end)

describe("convolutions", function()
  it("take one dim as two of which the first is 1, and three as planes", function()
    for n = 1, 3 do
      local shape, kernel = { 2, 3 }, { 4, 3 }
      for k = 1, n do shape[k + 2], kernel[k + 2] = 5, 2 end
      local x, w = lt.randn(shape), lt.randn(kernel)
      local y = lt["conv" .. n .. "d"](x, w)
      local sum = lt.zeros(y.shape) -- by its definition
      local places = { {} }
      for _ = 1, n do
        local more = {}
        for _, place in ipairs(places) do
          for at = 1, 2 do more[#more + 1] = { at, table.unpack(place) } end
        end
        places = more
      end
      for _, place in ipairs(places) do
        local part, weight = x, w
        for k = 1, n do part = part:narrow(k + 2, place[k], 4) end
        for k = 1, n do weight = weight:select(3, place[k]) end
        sum = sum + part:movedim(2, -1):matmul(weight:t()):movedim(-1, 2)
      end
      near(sum, y, 1e-4)
    end
  end)

  it("of volumes with a weight for each channel are those of each channel", function()
    local x, w, b = lt.randn(2, 3, 6, 5, 7), lt.randn(3, 1, 3, 2, 3), lt.randn(3)
    local options = {
      {}, { padding = 1 }, { padding = { 2, 0, 1 }, dilation = { 2, 1, 1 } },
      { stride = { 2, 1, 3 }, padding = { 1, 1, 1 } }, { padding = "same" },
    }
    for _, o in ipairs(options) do
      local parts = {}
      for k = 1, 3 do
        parts[k] = lt.conv3d(x:narrow(2, k, 1), w:narrow(1, k, 1), b:narrow(1, k, 1), o)
      end
      o.groups = 3
      near(lt.cat(parts, 2), lt.conv3d(x, w, b, o), 1e-5)
      near(lt.cat(parts, 2):select(1, 2), lt.conv3d(x:select(1, 2), w, b, o), 1e-5)
    end
    local function grads(fn)
      local v, u = x:clone():requires_grad_(), w:clone():requires_grad_()
      local y = fn(v, u)
      return lt.grad((y * y):sum(), { v, u })
    end
    local want = grads(function(v, u)
      local parts = {}
      for k = 1, 3 do parts[k] = lt.conv3d(v:narrow(2, k, 1), u:narrow(1, k, 1)) end
      return lt.cat(parts, 2)
    end)
    local got = grads(function(v, u) return lt.conv3d(v, u, nil, { groups = 3 }) end)
    near(want[1], got[1], 1e-3)
    near(want[2], got[2], 1e-3)
  end)

  it("of volumes of nothing with a weight for each channel give nothing", function()
    local y = lt.conv3d(lt.zeros(0, 2, 4, 4, 4), lt.ones(2, 1, 2, 2, 2), nil, { groups = 2 })
    assert.same({ 0, 2, 3, 3, 3 }, y.shape)
  end)

  it("of f16 and bf16 are those of f32, rounded", function()
    local x, w = lt.randn(2, 4, 3, 5, 5), lt.randn(6, 2, 2, 3, 3)
    for dtype, bound in pairs { f16 = 0.03, bf16 = 0.3 } do
      local a, b = x:to(dtype), w:to(dtype)
      local y = lt.conv3d(a, b, nil, { padding = 1, groups = 2 })
      assert.equal(dtype, y.dtype)
      near(lt.conv3d(a:to "f32", b:to "f32", nil, { padding = 1, groups = 2 }), y, bound)
    end
  end)

  it("in autocast are computed in the lower dtype", function()
    local _ <close> = lt.autocast "bf16"
    assert.equal("bf16", lt.conv1d(lt.ones(1, 2, 5), lt.ones(3, 2, 2)).dtype)
    assert.equal("bf16", lt.conv_transpose2d(lt.ones(1, 2, 5, 5), lt.ones(2, 3, 2, 2)).dtype)
    assert.equal("f32", lt.avg_pool2d(lt.ones(1, 2, 4, 4), 2).dtype)
    assert.equal("f32", lt.adaptive_avg_pool2d(lt.ones(1, 2, 4, 4), 3).dtype)
  end)

  it("of nothing give nothing", function()
    local x = lt.ones(0, 2, 4, 4):requires_grad_()
    local y = lt.conv2d(x, lt.ones(3, 2, 2, 2), nil, { padding = "same" })
    y:sum():backward()
    assert.same({ 0, 3, 4, 4 }, y.shape)
    assert.same({ 0, 2, 4, 4 }, x.grad.shape)
  end)

  it("name what does not fit, with the shapes", function()
    local x, w = lt.ones(2, 3, 5, 5), lt.ones(4, 3, 3, 3)
    assert.matches("conv2d: channels do not fit: x %[2, 3, 5, 5%], weight %[4, 2, 3, 3%] %[out, in "
      .. "/ groups, height, width%], groups 1", error_of(lt.conv2d, x, lt.ones(4, 2, 3, 3)))
    assert.matches("conv2d: x must be %[N, C, H, W%] or %[C, H, W%], got %[5, 5%]",
      error_of(lt.conv2d, lt.ones(5, 5), w))
    assert.matches("conv2d: weight %[4, 3, 7, 7%] is larger than x %[2, 3, 5, 5%] with padding "
      .. "{0, 0}", error_of(lt.conv2d, x, lt.ones(4, 3, 7, 7)))
    assert.matches("conv2d: stride must be at least 1, got {1, 0}",
      error_of(lt.conv2d, x, w, nil, { stride = { 1, 0 } }))
    assert.matches("conv2d: stride must be a number or a list of 2, got {1, 1, 1}",
      error_of(lt.conv2d, x, w, nil, { stride = { 1, 1, 1 } }))
    assert.matches("conv2d: not defined for i64; write x:to%('f32'%) first",
      error_of(lt.conv2d, x:to "i64", w:to "i64"))
    assert.matches("conv2d: padding 'same' needs a stride of 1, got {2, 2}",
      error_of(lt.conv2d, x, w, nil, { padding = "same", stride = 2 }))
    assert.matches("conv1d: weight must be %[out, in / groups, length%], got %[4, 3, 3, 3%]",
      error_of(lt.conv1d, lt.ones(2, 3, 5), w))
    assert.matches("conv_transpose2d: output_padding {1, 1} must be smaller than stride {1, 1} or "
      .. "dilation {1, 1}", error_of(lt.conv_transpose2d, x, lt.ones(3, 1, 2, 2), nil,
      { output_padding = 1 }))
  end)
end)

describe("pooling", function()
  it("returns where the maxima stand, of channels that lie last too", function()
    local x = lt.conv2d(lt.randn(2, 3, 7, 6), lt.randn(4, 3, 1, 1)):detach()
    local o = { stride = 2, padding = 1, ceil_mode = true, return_indices = true }
    local y, at = lt.max_pool2d(x, 3, o)
    assert.equal("i64", at.dtype)
    near(y, x:flatten(3):gather(3, at:flatten(3)):reshape(y.shape), 0)
    near(lt.max_pool2d(x:contiguous(), 3, o), y, 0)
  end)

  it("of volumes takes planes and depth of both layouts alike", function()
    local x = lt.randn(2, 3, 5, 6, 4)
    local last = x:permute(1, 3, 4, 5, 2):contiguous():permute(1, 5, 2, 3, 4)
    local o = { padding = 1, return_indices = true }
    local y, at = lt.max_pool3d(x, 3, o)
    local z, also = lt.max_pool3d(last, 3, o)
    near(y, z, 0)
    assert.same(list(at), list(also))
    near(y, x:flatten(3):gather(3, at:flatten(3)):reshape(y.shape), 0)
    near(lt.avg_pool3d(x, 2), lt.avg_pool3d(last, 2), 1e-6)
  end)

  it("lets NaN win, and minus infinity too where there is nothing else", function()
    local x = lt.tensor { { { 1, 0 / 0, 3, 4, -math.huge, -math.huge } } }
    local y, at = lt.max_pool1d(x, 2, { return_indices = true })
    assert.is_true(y[{ 1, 1, 1 }]:item() ~= y[{ 1, 1, 1 }]:item())
    assert.same({ 1, 3, 4 }, list(at)[1][1])
    assert.equal(-math.huge, y[{ 1, 1, 3 }]:item())
  end)

  it("puts maxima back where they stood", function()
    local x = lt.randn(2, 3, 6, 4)
    local y, at = lt.max_pool2d(x, 2, { return_indices = true })
    local back = lt.max_unpool2d(y, at, 2)
    near(lt.where(back:ne(0), x, 0), back, 0)
    assert.equal(2 * 3 * 3 * 2, back:ne(0):sum():item())
    assert.same({ 2, 3, 7, 5 }, lt.max_unpool2d(y, at, 2, { output_size = { 7, 5 } }).shape)
  end)

  it("names what does not fit, with the shapes", function()
    local x = lt.ones(2, 3, 5, 5)
    assert.matches("max_pool2d: padding {2, 0} is more than half of kernel_size {2, 2}",
      error_of(lt.max_pool2d, x, 2, { padding = { 2, 0 } }))
    assert.matches("max_pool2d: stride must be at least 1, got {0, 0}",
      error_of(lt.max_pool2d, x, 2, { stride = 0 }))
    assert.matches("max_pool2d: kernel_size {2, 6} is larger than x %[2, 3, 5, 5%]",
      error_of(lt.max_pool2d, x, { 2, 6 }, { stride = 1 }))
    assert.matches("avg_pool2d: not defined for i64; write x:to%('f32'%) first",
      error_of(lt.avg_pool2d, x:to "i64", 2))
    assert.matches("max_unpool2d: indices must be integers of the shape of x: %[2, 3, 5, 5%], got "
      .. "f32 of %[2, 3, 5, 5%]", error_of(lt.max_unpool2d, x, x, 2))
    assert.matches("adaptive_avg_pool2d: output_size must be a number or a list of 2, got "
      .. "{1, 1, 1}", error_of(lt.adaptive_avg_pool2d, x, { 1, 1, 1 }))
    assert.matches("output_size must be a number or a list of 2, got {%-1, 1, 1}",
      error_of(lt.adaptive_avg_pool2d, x, { false, 1, 1 }))
    assert.matches("must be an integer, got true",
      error_of(lt.adaptive_avg_pool2d, x, { true, 1 }))
    assert.matches("must be an integer, got false", error_of(lt.max_pool2d, x, { false, 1 }))
  end)
end)
