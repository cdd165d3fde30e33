-- spec/special/special_spec.lua: lt.special: polynomials against their definitions, functions far
-- from where spec/ops/rows_spec.lua looks against identities; beside PyTorch: spec/parity.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local special = lt.special

local function f64(list) return lt.tensor(list, {dtype = "f64"}) end
local function near(want, got, bound)
  assert.same(want.shape, got.shape)
  local d = ((want - got):abs() / want:abs():clamp{min = 1}):amax():item()
  assert(d <= (bound or 1e-13), ("differs by %g"):format(d))
end
local FAR <const> = f64{1e-8, 1e-3, 0.1, 0.7, 1, 3, 19.9, 20.1, 50, 300, 1e4, 1e8}

describe("lt.special", function()
  it("has functions of lt by PyTorch's names", function()
    local x = f64{0.3, 0.6}
    for name, own in pairs{expit = "sigmoid", gammaln = "lgamma", psi = "digamma", erf = "erf",
      modified_bessel_i0 = "i0", modified_bessel_i1 = "i1", ndtri = "ndtri"} do
      assert.same(lt[own](x):tolist(), special[name](x):tolist())
    end
    assert.same(lt.igamma(x, x):tolist(), special.gammainc(x, x):tolist())
    assert.same(lt.igammac(x, x):tolist(), special.gammaincc(x, x):tolist())
    assert.same(lt.mvlgamma(x + 3, 2):tolist(), special.multigammaln(x + 3, 2):tolist())
    assert.same(lt.polygamma(2, x):tolist(), special.polygamma(2, x):tolist())
  end)
end)

describe("Bessel functions", function()
  it("have their Wronskians from 1e-8 to 1e8", function()
    near(1 / FAR, lt.i0e(FAR) * lt.scaled_modified_bessel_k1(FAR)
      + lt.i1e(FAR) * lt.scaled_modified_bessel_k0(FAR))
    near(2 / (math.pi * FAR), lt.bessel_j1(FAR) * lt.bessel_y0(FAR)
      - lt.bessel_j0(FAR) * lt.bessel_y1(FAR))
  end)

  it("are infinite, 0 or NaN at the ends", function()
    local inf <const> = math.huge
    assert.same({0, 0}, lt.i0e(f64{inf, -inf}):tolist())
    assert(lt.i0(f64{713}):item() < inf and lt.i1(f64{-713}):item() > -inf)
    for _, name in ipairs{"modified_bessel_k0", "scaled_modified_bessel_k1"} do
      local y = lt[name](f64{0, inf, -1}):tolist()
      assert.same({inf, 0}, {y[1], y[2]})
      assert(y[3] ~= y[3])
    end
    assert.equal(-inf, lt.bessel_y0(f64{0}):item())
    assert(lt.bessel_y1(f64{-1}):isnan():item())
    assert.same({1, 0}, lt.spherical_bessel_j0(f64{0, inf}):tolist())
  end)
end)

describe("lt.airy_ai", function()
  it("has the values of its tables", function()
    near(f64{-0.17640612707798469, 0.35076100902411431, 1}, lt.cat{lt.airy_ai(f64{-20, -5}),
      lt.airy_ai(f64{5}) / 1.0834442813607442e-4})
  end)
end)

describe("the normal distribution", function()
  it("is inverted in both tails", function()
    local p = f64{1e-300, 1e-20, 1e-3, 0.2, 0.5, 0.8, 1 - 1e-12}
    near(p:log(), lt.log_ndtr(lt.ndtri(p)), 1e-12)
    near(f64{1e-20, 1e-3, 0.5}, lt.ndtr(lt.ndtri(f64{1e-20, 1e-3, 0.5})))
    assert.same({-math.huge, math.huge}, lt.ndtri(f64{0, 1}):tolist())
    assert(lt.ndtri(f64{1.5, -1}):isnan():all():item())
  end)

  it("has a logarithm far below", function()
    near(f64{-0.5e8 - math.log(1e4 * math.sqrt(2 * math.pi))}, lt.log_ndtr(f64{-1e4}))
    near(f64{1e-10 / math.sqrt(math.pi)}, lt.erfcx(f64{1e10}))
    assert.equal(math.huge, lt.erfcx(f64{-30}):item())
  end)
end)

describe("lt.igamma", function()
  local a, x = f64{1e-3, 0.3, 2, 30, 1000, 1e5}, f64{0.01, 0.4, 0.1, 28, 1010, 1.01e5}
  it("and igammac make 1, and follow the recurrence of the gamma function", function()
    near(lt.ones_like(a), lt.igamma(a, x) + lt.igammac(a, x))
    local step = (a * x:log() - x - lt.lgamma(a + 1)):exp()
    near(lt.igamma(a, x) - step, lt.igamma(a + 1, x), 1e-10)
    near(f64{0.63128154}, lt.igamma(f64{1000}, f64{1010}), 1e-2)
  end)

  it("has the ends that its definition gives", function()
    local inf <const> = math.huge
    assert.same({0, 1, 1, 0}, lt.igamma(f64{1, 1, 0, inf}, f64{0, inf, 1, 1}):tolist())
    assert.same({1, 0, 0, 1}, lt.igammac(f64{1, 1, 0, inf}, f64{0, inf, 1, 1}):tolist())
    assert(lt.igamma(f64{-1, 1, 0}, f64{1, -1, 0}):isnan():all():item())
  end)
end)

describe("lt.polygamma", function()
  it("is the derivative of the one below it", function()
    local x = f64{0.4, 1.5, 7}:requires_grad_()
    for n = 0, 3 do
      local y = lt.grad(lt.polygamma(n, x):sum(), {x})[1]
      near(lt.polygamma(n + 1, x):detach(), y, 1e-10)
    end
    assert.same(lt.polygamma(2, x):tolist(), x:polygamma(2):tolist())
    assert.matches("polygamma: n must be at least 0", error_of(lt.polygamma, -1, x:detach()))
  end)
end)

describe("lt.mvlgamma", function()
  it("is a sum of lgamma, NaN below its domain", function()
    local x = f64{3, 4.5}
    near(1.5 * math.log(math.pi) + x:lgamma() + (x - 0.5):lgamma() + (x - 1):lgamma(),
      lt.mvlgamma(x, 3))
    assert(lt.mvlgamma(f64{0.5, 1}, 3):isnan():all():item())
  end)
end)

describe("a polynomial of lt.special", function()
  local x = f64{-0.9, -0.3, 0.2, 0.8}
  local t = x:acos()
  it("of Chebyshev has the form with cosines", function()
    for n = 0, 9 do
      near((t * n):cos(), special.chebyshev_polynomial_t(x, n))
      near((t * (n + 1)):sin() / t:sin(), special.chebyshev_polynomial_u(x, n))
      near((t * (n + 0.5)):cos() / (t / 2):cos(), special.chebyshev_polynomial_v(x, n))
      near((t * (n + 0.5)):sin() / (t / 2):sin(), special.chebyshev_polynomial_w(x, n))
    end
    for _, kind in ipairs{"t", "u", "v", "w"} do
      near(special["chebyshev_polynomial_" .. kind](x, 4),
        special["shifted_chebyshev_polynomial_" .. kind]((x + 1) / 2, 4))
    end
  end)

  it("of Hermite, Laguerre and Legendre has its coefficients", function()
    near(8 * x ^ 3 - 12 * x, special.hermite_polynomial_h(x, 3))
    near(x ^ 4 - 6 * x ^ 2 + 3, special.hermite_polynomial_he(x, 4))
    near((6 - 18 * x + 9 * x ^ 2 - x ^ 3) / 6, special.laguerre_polynomial_l(x, 3))
    near((35 * x ^ 4 - 30 * x ^ 2 + 3) / 8, special.legendre_polynomial_p(x, 4))
  end)

  it("takes degrees as a tensor, numbers, integers, and has derivatives", function()
    local n = f64{{0}, {3.7}, {1}, {-2}}
    local y = special.hermite_polynomial_h(x, n)
    assert.same({4, 4}, y.shape)
    for k, degree in ipairs{0, 3, 1, -1} do near(special.hermite_polynomial_h(x, degree), y[k]) end
    assert.same({0, 0, 0, 0}, y[4]:tolist())
    assert.equal("f32", special.legendre_polynomial_p(lt.tensor{1, 2}, 2).dtype)
    near(f64{0.5, 1}, special.chebyshev_polynomial_t(0.5, f64{1, 0}))
    assert.is_true(lt.gradgradcheck(function(z) return special.legendre_polynomial_p(z, n) end,
      x:clone():requires_grad_()))
    assert.matches("special.legendre_polynomial_p: x or n must be a tensor, got 1 and 2",
      error_of(special.legendre_polynomial_p, 1, 2))
  end)
end)
