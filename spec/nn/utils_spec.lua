-- spec/nn/utils_spec.lua: nn.utils.register_parametrization and cached, norms of several tensors,
-- layers with their batch norm. Numbers are PyTorch's, of the same weights.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn
local utils = nn.utils

local WEIGHT <const> = (lt.arange(9):to "f32" * 0.7):sin():reshape(3, 3)

local function near(want, got)
  got = got:detach():flatten():tolist()
  assert.equal(#want, #got)
  for i, value in ipairs(want) do assert.near(value, got[i], 1e-5) end
end

local function linear()
  local layer = nn.Linear(3, 3)
  layer:load_state_dict { weight = WEIGHT, bias = lt.zeros(3) }
  return layer
end

local Symmetric = lt.Module:extend "Symmetric"
function Symmetric:forward(x) return x:triu() + x:triu(1):t() end
function Symmetric:right_inverse(a) return a:triu() end

local Positive = lt.Module:extend "Positive"
function Positive:forward(x) return x:exp() end
function Positive:right_inverse(a) return a:log() end

describe("nn.utils.register_parametrization", function()
  it("computes a parameter by modules in turn", function()
    local layer = linear()
    local weight = layer.weight
    assert.equal(layer, utils.register_parametrization(layer, "weight", Symmetric()))
    utils.parametrize.register_parametrization(layer, "weight", Positive())
    near({ 1, 1.904497, 2.679016, 1.904497, 1.397924, 0.704136, 2.679016, 0.704136, 0.531918 },
      layer.weight)
    assert.same({ "bias", "parametrizations.weight.original" }, layer:parameters().names)
    layer(lt.ones(1, 3)):sum():backward()
    near({ 1, 3.808993, 5.358033, 0, 1.397924, 1.408273, 0, 0, 0.531918 }, weight.grad)
    layer.weight = lt.tensor { { 1.0, 2, 3 }, { 2, 4, 5 }, { 3, 5, 6 } }
    near({ 0, 0.693147, 1.098612, 0, 1.386294, 1.609438, 0, 0, 1.791759 }, weight)
    assert.equal(nn.Linear, utils.type_before_parametrizations(layer))
    utils.remove_parametrizations(layer, "weight")
    assert.equal(weight, layer.weight)
    near({ 1, 2, 3, 2, 4, 5, 3, 5, 6 }, weight)
    assert.equal("Linear(3, 3)", tostring(layer))
  end)

  it("may compute it from several tensors", function()
    local First = lt.Module:extend "First"
    function First:forward(x, y) return x:unsqueeze(-1):matmul(y:unsqueeze(-2)) end
    function First:right_inverse(z)
      local u, s, v = lt.linalg.svd(z, { full_matrices = false })
      local root = s[1]:sqrt()
      return { u(lt.all, 1) * root, v[1] * root }
    end
    local layer = utils.register_parametrization(linear(), "weight", First())
    assert.same({ "bias", "parametrizations.weight.original0",
      "parametrizations.weight.original1" }, layer:parameters().names)
    near({ 0.49399, 0.64224, 0.48844, 0.25952, 0.3374, 0.2566, -0.75603, -0.98291, -0.74752 },
      layer.weight)
    assert.matches("can be left", error_of(utils.remove_parametrizations, layer, "weight", false))
  end)

  it("names what is wrong", function()
    local layer = linear()
    local Wide = lt.Module:extend "Wide"
    function Wide:forward(x) return lt.cat({ x, x }, 1) end
    assert.matches("'weight' of Linear is [3, 3] f32, and would become [6, 3] f32: write unsafe = "
      .. "true if it is to", error_of(utils.register_parametrization, layer, "weight", Wide()), 1,
      true)
    assert.same({ 6, 3 }, utils.register_parametrization(layer, "weight", Wide(),
      { unsafe = true }).weight.shape)
    assert.matches("Wide has no right_inverse: a value cannot be assigned",
      error_of(function() layer.weight = WEIGHT end))
    assert.matches("the parametrization must be a module: got 1",
      error_of(utils.register_parametrization, layer, "bias", 1))
    assert.matches("nn.utils.rnn: there is no 'pack_sequence'; write y, state = layer%(x, state",
      error_of(function() return utils.rnn.pack_sequence end))
  end)
end)

describe("nn.utils.cached", function()
  it("keeps what was computed until it ends", function()
    local layer = utils.register_parametrization(linear(), "weight", Symmetric())
    assert.is_false(rawequal(layer.weight, layer.weight))
    do
      local _ <close> = utils.cached()
      local weight = layer.weight
      assert.equal(weight, layer.weight)
      layer.weight = lt.zeros(3, 3)
      near({ 0, 0, 0, 0, 0, 0, 0, 0, 0 }, layer.weight)
    end
    assert.is_false(rawequal(layer.weight, layer.weight))
    assert.same({ true, 5 }, { utils.parametrize.cached(function(x)
      return rawequal(layer.weight, layer.weight), x
    end, 5) })
  end)
end)

describe("nn.utils.get_total_norm", function()
  it("is the norm of all tensors, which clip_grads_with_norm_ takes", function()
    local list = { lt.tensor { 3.0, 4 }, lt.tensor { { 1.0, -2 }, { 0.5, 2 } } }
    for p, want in pairs { [2] = 5.85235, [1] = 12.5, [math.huge] = 4, [3] = 4.76404 } do
      assert.near(want, utils.get_total_norm(list, p):item(), 1e-5)
    end
    assert.near(4, utils.get_total_norm(list, { norm_type = "inf" }):item(), 1e-6)
    assert.equal(0, utils.get_total_norm({}):item())
    assert.matches("get_total_norm: the norm is inf",
      error_of(utils.get_total_norm, lt.tensor { math.huge }, 2, true))
    local w = lt.parameter(lt.zeros(2))
    w.grad = lt.tensor { 3.0, 4 }
    utils.clip_grads_with_norm_({ w }, 1, utils.get_total_norm(w.grad))
    near({ 0.6, 0.8 }, w.grad)
    utils.clip_grads_with_norm_(w, 7, lt.tensor(1.0))
    near({ 0.6, 0.8 }, w.grad)
  end)
end)

describe("nn.utils.fuse_conv_bn_eval", function()
  local function norm()
    local bn = nn.BatchNorm2d(2)
    bn:load_state_dict({ weight = lt.tensor { 1.5, 0.7 }, bias = lt.tensor { 0.2, 0.4 },
      running_mean = lt.tensor { 0.3, -0.1 }, running_var = lt.tensor { 2, 0.5 } }, false)
    return bn:eval()
  end

  it("is one layer that gives the same", function()
    local conv = nn.Conv2d(1, 2, 2):eval()
    conv:load_state_dict { bias = lt.tensor { 0.1, -0.2 },
      weight = (lt.arange(8):to "f32" * 0.7):sin():reshape(2, 1, 2, 2) }
    local made = utils.fuse_conv_bn_eval(conv, norm())
    near({ 0, 0.683294, 1.045225, 0.91557, 0.331618, -0.347254, -0.862807, -0.972569 },
      made.weight)
    near({ -0.012131, 0.301006 }, made.bias)
    local turned = nn.ConvTranspose2d(1, 2, 2, { bias = false }):eval()
    local x = lt.randn(1, 1, 3, 3)
    assert.is_true(utils.fuse_conv_bn_eval(turned, norm(), true)(x):allclose(norm()(turned(x)),
      { atol = 1e-6 }))
    local line, bn = nn.Linear(3, 2):eval(), nn.BatchNorm1d(2):eval()
    bn:load_state_dict(norm():state_dict())
    assert.is_true(utils.fuse_linear_bn_eval(line, bn)(WEIGHT):allclose(bn(line(WEIGHT)),
      { atol = 1e-6 }))
    assert.matches("fuse_conv_bn_eval: Conv2d must be in evaluation mode: call :eval()",
      error_of(utils.fuse_conv_bn_eval, nn.Conv2d(1, 2, 2), norm()), 1, true)
  end)
end)
