-- spec/nn/norms_spec.lua: group, instance and RMS normalization: formulas, state, errors.
-- Beside PyTorch: spec/parity.
-- tags: slow
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

local F64 <const> = {dtype = "f64"}

local function values(...)
  local n, shape = 1, {...}
  for _, size in ipairs(shape) do n = n * size end
  return (lt.arange(n, F64) * 0.7):sin():reshape(shape)
end

local function same(a, b, tolerance)
  assert.same(a.shape, b.shape)
  assert.is_true((a - b):abs():amax():item() < (tolerance or 1e-12))
end

describe("nn.RMSNorm", function()
  it("divides by the root of the mean square", function()
    local x = values(3, 2, 4)
    local norm = nn.RMSNorm({2, 4}, {eps = 0.5}):to "f64"
    local root = ((x * x):mean({2, 3}, true) + 0.5):sqrt()
    same(x / root, norm(x))
    norm:load_state_dict{weight = values(2, 4)}
    same(x / root * values(2, 4), norm(x))
    assert.same({"weight"}, norm:parameters().names)
    assert.same({}, nn.RMSNorm(4, {elementwise_affine = false}):parameters().names)
  end)

  it("has the eps of the dtype where none is given, f32's for halves", function()
    for dtype, eps in pairs{f64 = 2.0 ^ -52, f32 = 2.0 ^ -23, bf16 = 2.0 ^ -23, f16 = 2.0 ^ -23} do
      local x = lt.full({1, 4}, 2.0 ^ -12):to(dtype)
      local want = 2.0 ^ -12 / math.sqrt(2.0 ^ -24 + eps)
      local y = lt.rms_norm(x, {normalized_shape = {4}})
      assert.equal(dtype, y.dtype)
      assert.near(want, y[1][1]:item(), want / 200, dtype)
    end
    assert.equal("RMSNorm(4)", tostring(nn.RMSNorm(4)))
    assert.equal("RMSNorm({2, 4}, {eps = 1e-06})", tostring(nn.RMSNorm({2, 4}, {eps = 1e-6})))
  end)

  it("has the gradients of its formula, of many rows and wide ones", function()
    for _, shape in ipairs{{700, 5}, {3, 5000}, {1, 1}} do
      local x, w = values(shape[1], shape[2]):requires_grad_(), values(shape[2]):requires_grad_()
      local weights = values(shape[2], shape[1]):t()
      local y = lt.rms_norm(x, {shape[2]}, w, 1e-3)
      local got = lt.grad((y * weights):sum(), {x, w})
      local plain = x / ((x * x):mean(2, true) + 1e-3):sqrt() * w
      same(plain, y, 1e-11)
      local want = lt.grad((plain * weights):sum(), {x, w})
      for k = 1, 2 do same(want[k], got[k], 1e-10) end
    end
  end)

  it("refuses other shapes", function()
    assert.matches("norms_spec.lua:%d+: rms_norm: the last dims of %[2, 3%] are not the normalized "
      .. "shape %[4%]", error_of(function() nn.RMSNorm(4)(lt.zeros(2, 3)) end))
    assert.matches("rms_norm: weight of %[2%] for the normalized shape %[3%]",
      error_of(function() lt.rms_norm(lt.zeros(2, 3), {3}, lt.zeros(2)) end))
    assert.matches("nn.RMSNorm: unknown option 'bias'", error_of(nn.RMSNorm, 4, {bias = false}))
    assert.matches("nn.RMSNorm: normalized_shape must be a size", error_of(nn.RMSNorm, {}))
  end)
end)

describe("nn.GroupNorm", function()
  it("brings groups of channels to mean 0 and variance 1", function()
    local x, norm = values(2, 6, 3, 5), nn.GroupNorm(3, 6):to "f64"
    local y = norm(x):reshape(6, 30)
    same(lt.zeros({6}, F64), y:mean(2))
    same(lt.ones({6}, F64), y:square():mean(2), 1e-4)
    norm:load_state_dict{weight = values(6), bias = values(6) + 1}
    local rows = x:reshape(6, 30)
    local plain = (rows - rows:mean(2, true)) / (rows:var(2, true, 0) + 1e-5):sqrt()
    local w, b = values(6):reshape(6, 1, 1), (values(6) + 1):reshape(6, 1, 1)
    same(plain:reshape(x.shape) * w + b, norm(x))
    assert.equal("GroupNorm(3, 6, {eps = 1e-05})", tostring(norm))
  end)

  it("has the gradients of its formula, weighted or not, of rows and of planes", function()
    for _, shape in ipairs{{3, 4}, {2, 4, 1}, {1, 4, 35}} do
      local x = values(table.unpack(shape)):requires_grad_()
      local w, b = values(4):requires_grad_(), (values(4) + 1):requires_grad_()
      local function norm(a, p, q) return lt.group_norm(a, 2, p, q, 1e-3) end
      assert.is_true(lt.gradcheck(norm, {x}))
      assert.is_true(lt.gradcheck(norm, {x, w}))
      assert.is_true(lt.gradcheck(function(a, p) return norm(a, nil, p) end, {x, b}))
      assert.is_true(lt.gradcheck(norm, {x, w, b}))
    end
  end)

  it("of one group is layer norm, of as many as channels instance norm", function()
    local x = values(2, 4, 3, 5)
    same(lt.layer_norm(x, {normalized_shape = {4, 3, 5}}), lt.group_norm(x, {num_groups = 1}))
    same((lt.instance_norm(x)), (lt.group_norm(x, {num_groups = 4})))
  end)

  it("keeps the dtype, and takes an empty batch", function()
    local norm = nn.GroupNorm(2, 4)
    assert.equal("bf16", norm(values(2, 4, 3):to "bf16").dtype)
    assert.same({0, 4, 3}, norm(lt.zeros(0, 4, 3)).shape)
  end)

  it("refuses what does not fit", function()
    assert.matches("nn.GroupNorm: num_channels must be divisible by num_groups: got 6 and 4",
      error_of(nn.GroupNorm, 4, 6))
    assert.matches("group_norm: the channels of %[2, 3%] are not num_groups = 2 equal groups",
      error_of(function() lt.group_norm(lt.zeros(2, 3), {num_groups = 2}) end))
    assert.matches("group_norm: weight of %[2%] for the 4 channels of %[2, 4%]",
      error_of(function() lt.group_norm(lt.zeros(2, 4), 2, lt.ones(2)) end))
    assert.matches("group_norm: needs x %[N, C, ...%] with elements, got %[3%]",
      error_of(function() lt.group_norm(lt.zeros(3), {num_groups = 1}) end))
  end)
end)

describe("instance norm", function()
  it("is batch norm of each element by itself", function()
    for name, shape in pairs{InstanceNorm1d = {3, 2, 8}, InstanceNorm2d = {3, 2, 2, 4},
      InstanceNorm3d = {3, 2, 2, 2, 2}} do
      local x = values(table.unpack(shape))
      local norm = nn[name](2):to "f64"
      for k = 1, 3 do
        local each = x:narrow(1, k, 1)
        same((lt.batch_norm(each)), norm(x):narrow(1, k, 1))
        same(norm(x)[k], norm(x[k]))
      end
      assert.same({}, norm:state_dict())
    end
  end)

  it("has weight and bias of channels with affine = true", function()
    local norm, x = nn.InstanceNorm1d(2, {affine = true}):to "f64", values(3, 2, 5)
    norm:load_state_dict{weight = values(2), bias = values(2) + 1}
    local w, b = values(2):reshape(2, 1), (values(2) + 1):reshape(2, 1)
    same((lt.instance_norm(x)) * w + b, norm(x))
  end)

  it("keeps running averages where it is asked to, and evaluates with them", function()
    local norm, x = nn.InstanceNorm1d(2, {track_running_stats = true}):to "f64", values(3, 2, 5)
    local plain = nn.InstanceNorm1d(2):to "f64"
    same(plain(x), norm(x))
    same(x:mean({1, 3}) * 0.1, norm.running_mean)
    same(x:var{dims = 3}:mean(1) * 0.1 + 0.9, norm.running_var)
    local mean, variance = norm.running_mean:reshape(2, 1), norm.running_var:reshape(2, 1)
    same((x - mean) / (variance + 1e-5):sqrt(), norm:eval()(x))
    same(plain(x), plain:eval()(x))
  end)

  it("refuses what does not fit", function()
    assert.matches("nn.InstanceNorm2d: x must be %[B, C, H, W%] or %[C, H, W%] with 3 channels: "
      .. "got .*%[2, 4, 5, 6%]",
      error_of(function() nn.InstanceNorm2d(3)(lt.zeros(2, 4, 5, 6)) end))
    assert.matches("nn.InstanceNorm1d: x must be", error_of(function()
      nn.InstanceNorm1d(3)(lt.zeros(3))
    end))
    assert.matches("instance_norm: needs more than one value per channel: %[2, 3, 1%]",
      error_of(function() nn.InstanceNorm1d(3)(lt.zeros(2, 3, 1)) end))
    assert.matches("nn.InstanceNorm1d: unknown option 'momentun'",
      error_of(nn.InstanceNorm1d, 3, {momentun = 1}))
  end)
end)
