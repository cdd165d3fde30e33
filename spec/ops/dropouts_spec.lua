-- spec/ops/dropouts_spec.lua: random changes that training makes, by their statistics.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local F, nn = lt.nn.functional, lt.nn

before_each(function() lt.seed(3) end)

local function near(want, got, bound)
  assert.is_true(math.abs(want - got) < bound, ("%g is not near %g"):format(got, want))
end

describe("alpha_dropout", function()
  it("keeps mean 0 and variance 1 of what SELU gives", function()
    local x = lt.randn(200, 200, { dtype = "f64" })
    local y = F.alpha_dropout(F.selu(x), 0.3)
    near(0, y:mean():item(), 0.03)
    near(1, y:var():item(), 0.03)
  end)

  it("sets what is dropped to SELU's least value, before the scale", function()
    -- torch.nn.functional.alpha_dropout(torch.ones(4), 0.5, training=True): one of these
    for _, v in ipairs(F.alpha_dropout(lt.ones(30), 0.5):tolist()) do
      assert.is_true(math.abs(v - 1.6655989) < 1e-6 or math.abs(v + 0.7791939) < 1e-6, v)
    end
    assert.same({ 0, 0 }, F.alpha_dropout(lt.ones(2), 1):tolist())
    assert.same({ 1, 1 }, F.alpha_dropout(lt.ones(2), 0):tolist())
  end)

  it("of features has one draw for a channel", function()
    local y = F.feature_alpha_dropout(lt.ones(8, 4, 3), 0.5)
    assert.equal(0, (y - y:narrow(3, 1, 1)):abs():amax():item())
    assert.is_true(y:var():item() > 0.1)
    assert.matches("feature_alpha_dropout: x must be %[N, C, ...%] of 2 or more dims: got %[3%]",
      error_of(F.feature_alpha_dropout, lt.ones(3)))
  end)

  it("is a layer, which draws in training alone", function()
    local x = lt.ones(3, 2, 2)
    for _, name in ipairs { "AlphaDropout", "FeatureAlphaDropout", "RReLU" } do
      assert.same(x:tolist(), nn[name]():eval()(x):tolist())
    end
    assert.equal("AlphaDropout(0.1)", tostring(nn.AlphaDropout { p = 0.1 }))
    assert.is_true(nn.AlphaDropout(0.5)(lt.ones(50)):std():item() > 0.5)
  end)
end)

describe("dropout of channels", function()
  it("drops whole ones", function()
    for name, shape in pairs { dropout1d = { 8, 16, 4 }, dropout2d = { 8, 16, 2, 2 },
      dropout3d = { 8, 16, 2, 1, 2 } } do
      local rows = F[name](lt.ones(shape), 0.5):reshape { 128, 4 }
      assert.equal(0, (rows - rows:narrow(2, 1, 1)):abs():amax():item())
      near(1, rows:mean():item(), 0.4)
    end
    assert.matches("dropout2d: x must be %[N, C, ...%] of 4 dims: got %[2, 3%]",
      error_of(F.dropout2d, lt.ones(2, 3)))
  end)
end)

describe("gumbel_softmax", function()
  it("draws classes by their logits", function()
    local logits = lt.tensor { 0.0, math.log(3) }:expand(4000, 2)
    local y = F.gumbel_softmax(logits, 0.7, true)
    assert.same({ 4000 }, { y:sum():item() })
    near(0.75, y:mean(1)[2]:item(), 0.03)
    local soft = F.gumbel_softmax(logits, { tau = 0.5, dim = -1 })
    near(0, (soft:sum(2) - 1):abs():amax():item(), 1e-6)
  end)

  it("has the gradient of the soft sample where it is hard", function()
    local function grad(hard)
      lt.seed(5)
      local x = lt.tensor({ 0.1, 0.5, -0.2 }, { dtype = "f64", requires_grad = true })
      F.gumbel_softmax(x, 1, hard)[1]:backward()
      return x.grad:tolist()
    end
    assert.same(grad(false), grad(true))
  end)
end)

describe("rrelu", function()
  it("has a slope between the bounds in training, and their mean without", function()
    local x = lt.full({ 100 }, -1.0)
    local y = F.rrelu(x, 0.1, 0.3, true)
    assert.is_true(y:amin():item() >= -0.3 and y:amax():item() <= -0.1)
    assert.is_true(y:std():item() > 0.03)
    near(-0.2, F.rrelu(x, 0.1, 0.3)[1]:item(), 1e-6)
    assert.matches("rrelu: lower 1 is above upper 0.5", error_of(F.rrelu, x, 1, 0.5))
  end)
end)

describe("triplet_margin_with_distance_loss", function()
  it("takes a distance, and is the loss of its layer", function()
    local a, p, n = lt.tensor { { 1.0, 2 } }, lt.tensor { { 1.0, 4 } }, lt.tensor { { 2.0, 2 } }
    local function cityblock(x, y) return (x - y):abs():sum(-1) end
    local o = { distance_function = cityblock, margin = 0.5 }
    assert.equal(1.5, F.triplet_margin_with_distance_loss(a, p, n, o):item())
    assert.equal(1.5, nn.TripletMarginWithDistanceLoss(o)(a, p, n):item())
    assert.equal(1.5, nn.TripletMarginWithDistanceLoss(cityblock, 0.5)(a, p, n):item())
  end)
end)
