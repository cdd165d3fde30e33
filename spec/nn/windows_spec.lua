-- spec/nn/windows_spec.lua: layers of convolutions, pooling and padding. That they compute as
-- PyTorch's do is spec/parity/window_layers.lua's.
local lt = require "ltrain"

local nn = lt.nn

local function error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(message)
end
local function same(a, b) assert.same(a:tolist(), b:tolist()) end

describe("nn.Conv1d and nn.Conv3d", function()
  it("have weights [out, in / groups, ...]", function()
    assert.same({ 4, 1, 3 }, nn.Conv1d(2, 4, 3, { groups = 2 }).weight.shape)
    assert.same({ 4, 2, 3, 1, 2 }, nn.Conv3d(2, 4, { 3, 1, 2 }).weight.shape)
  end)

  it("pad by what padding_mode says", function()
    local x = lt.randn(2, 2, 6)
    local layer = nn.Conv1d(2, 3, 4, { padding = "same", padding_mode = "circular" })
    same(lt.conv1d(x:pad({ 1, 2 }, "circular"), layer.weight, layer.bias), layer(x))
  end)

  it("print what differs from the defaults", function()
    assert.equal('Conv1d(1, 2, 3, {stride = 2, padding_mode = "reflect"})',
      tostring(nn.Conv1d(1, 2, 3, { stride = 2, padding_mode = "reflect" })))
    assert.equal('Conv3d(1, 2, {3, 1, 1}, {padding = "same"})',
      tostring(nn.Conv3d(1, 2, { 3, 1, 1 }, { padding = "same" })))
  end)

  it("name what is wrong", function()
    assert.matches("nn%.Conv3d: kernel_size must be an integer or 3 of them: got",
      error_of(nn.Conv3d, 1, 1, { 2, 2 }))
    assert.matches("nn%.Conv1d: padding must be numbers, 'same' or 'valid': got 'sam'",
      error_of(nn.Conv1d, 1, 1, 2, { padding = "sam" }))
  end)
end)

describe("nn.ConvTranspose2d", function()
  it("gives the size that a call asks for", function()
    local layer = nn.ConvTranspose2d(2, 3, 3, { stride = 2, padding = 1 })
    assert.same({ 2, 3, 3, 3 }, layer.weight.shape)
    local x = lt.randn(1, 2, 4, 5)
    assert.same({ 1, 3, 7, 9 }, layer(x).shape)
    assert.same({ 1, 3, 8, 9 }, layer(x, { 8, 9 }).shape)
    assert.same({ 1, 3, 8, 10 }, layer(x, { 1, 3, 8, 10 }).shape)
    assert.matches("nn%.ConvTranspose2d: output_size 2 must be from 9 to 10 for .*%[1, 2, 4, 5%]: "
      .. "got 11", error_of(layer, x, { 8, 11 }))
  end)
end)

describe("pooling layers", function()
  it("return indices where they are asked for, which MaxUnpool takes", function()
    local x = lt.randn(2, 6)
    local y, at = nn.MaxPool1d(2, { return_indices = true })(x)
    assert.equal("i64", at.dtype)
    assert.same({ 2, 7 }, nn.MaxUnpool1d(2)(y, at, { 7 }).shape)
    assert.is_nil((select(2, nn.MaxPool1d(2)(x))))
  end)

  it("take one mean, or means of parts", function()
    local x = lt.tensor { { 1.0, 2, 3, 4, 5, 6 } }
    assert.same({ { 3.5 } }, nn.AdaptiveAvgPool1d(1)(x):tolist())
    assert.same({ { 2, 5 } }, nn.AdaptiveAvgPool1d(2)(x):tolist())
    assert.same({ { 2, 3, 5, 6 } }, nn.AdaptiveMaxPool1d(4)(x):tolist())
    assert.same({ { 5, 25 } }, (nn.LPPool1d(2, 2)(lt.tensor { { 3.0, 4, 7, 24 } })):tolist())
  end)

  it("print what differs from the defaults", function()
    assert.equal("MaxPool3d(2, {ceil_mode = true})",
      tostring(nn.MaxPool3d(2, { ceil_mode = true })))
    assert.equal("AdaptiveAvgPool2d({1, 2})", tostring(nn.AdaptiveAvgPool2d { 1, 2 }))
    assert.equal("AdaptiveAvgPool2d({false, 2})", tostring(nn.AdaptiveAvgPool2d { false, 2 }))
    assert.same({ 1, 1, 3, 2 }, nn.AdaptiveAvgPool2d { false, 2 }(lt.ones(1, 1, 3, 5)).shape)
    assert.same({ 1, 3, 5 }, (nn.AdaptiveMaxPool2d { 3, false }(lt.ones(1, 4, 5))).shape)
  end)
end)

describe("padding layers", function()
  it("take a number, or two for each dim", function()
    local x = lt.tensor { { { 1.0, 2, 3 } } }
    assert.same({ { { 0, 1, 2, 3, 0 } } }, nn.ZeroPad1d(1)(x):tolist())
    assert.same({ { { 1, 2, 3, 7, 7 } } }, nn.ConstantPad1d({ 0, 2 }, 7)(x):tolist())
    assert.same({ { { 2, 1, 2, 3, 2 } } }, nn.ReflectionPad1d(1)(x):tolist())
    assert.same({ { { 1, 1, 2, 3, 3 } } }, nn.ReplicationPad1d(1)(x):tolist())
    assert.same({ { { 3, 1, 2, 3, 1 } } }, nn.CircularPad1d(1)(x):tolist())
    assert.equal("ConstantPad2d(1, 0.5)", tostring(nn.ConstantPad2d(1, 0.5)))
  end)

  it("name what is wrong", function()
    assert.matches("nn%.ZeroPad2d: padding must be an integer or 4 of them: got 2",
      error_of(nn.ZeroPad2d, { 1, 2 }))
    assert.matches("nn%.ZeroPad2d: x must have 3 or 4 dims: got",
      error_of(nn.ZeroPad2d(1), lt.ones(2, 2)))
  end)
end)
