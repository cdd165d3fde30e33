-- spec/distributions/distributions_spec.lua: lt.distributions against torch.distributions
-- (torch_values.py says how the numbers were made), samples, gradients.

local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require "spec.recorded"
local standard_gamma = require "ltrain.distributions.standard_gamma"

local D <const> = lt.distributions
local derivative <const> = standard_gamma.derivative

local function t(values) return lt.tensor(values, { dtype = "f64" }) end

local function made(code)
  local name = code:match "^%a+"
  return assert(load(("local D, t = ... return D.%s"):format(code:gsub("^" .. name .. "{",
    name .. " {"))))(D, t)
end

local function near(want, got, tolerance)
  local list = got:flatten():tolist()
  assert.equal(#want, #list)
  for i, value in ipairs(want) do
    if value ~= value then
      assert.is_true(list[i] ~= list[i])
    elseif value - value ~= 0 then
      assert.equal(value, list[i])
    else
      assert.near(value, list[i], (tolerance or 1e-10) * math.max(1, math.abs(value)))
    end
  end
end

local METHODS <const> = { log_prob = true, entropy = true, cdf = true, icdf = true }

local function fact(p, name, case)
  if name == "icdf" then return p:icdf(t(0.3)) end
  if name == "entropy" then return p:entropy() end
  return METHODS[name] and p[name](p, t(case.at):reshape(case.shape)) or p[name]
end

local gamma <const> = {} -- { concentration, sample, derivative }

local function add(case)
  describe("distributions." .. case.p, function()
    local p, q = made(case.p), case.q and made(case.q)

    for _, name in ipairs { "log_prob", "entropy", "mean", "variance", "stddev", "mode", "cdf",
      "icdf" } do
      if case[name] then
        it("has PyTorch's " .. name, function() near(case[name], fact(p, name, case)) end)
      end
    end

    if q then
      it("has PyTorch's divergence from " .. case.q, function()
        near(case.kl, D.kl_divergence(p, q))
      end)
    end

    it("has samples of that mean and variance, the same for a seed", function()
      local function drawn(n)
        lt.seed(5)
        return p:sample { n }:to "f64"
      end
      assert.is_true(drawn(50):eq(drawn(50)):all():item())
      local n <const> = 10000
      local x <const> = drawn(n)
      assert.same({ n, table.unpack(p:shape_of()) }, x.shape)
      assert.is_false(x.requires_grad)
      if case.mean and case.mean[1] == case.mean[1] then
        local spread = math.sqrt(math.max(table.unpack(case.variance)))
        near(case.mean, x:mean(1), 0.05 * math.max(1, spread))
        near(case.variance, x:var(1), 0.1 * math.max(1, spread))
      end
    end)

    it("expands to a larger batch, with the same log_prob", function()
      local shape = { 3, table.unpack(p.batch_shape) }
      local wide = p:expand(shape)
      local at = t(case.at):reshape(case.shape)
      assert.same(shape, wide.batch_shape)
      assert.same({ 2, table.unpack(wide:shape_of()) }, wide:sample { 2 }.shape)
      assert.is_true(wide:log_prob(at):eq(p:log_prob(at)):all():item())
    end)
  end)
end

for _, case in ipairs(recorded "spec/distributions/torch_values.jsonl") do
  if case.gamma then gamma[#gamma + 1] = case.gamma else add(case) end
end

describe("rsample", function()
  it("has gradients by the parameters", function()
    local loc, scale = t { 0.5, -1.0 }, t { 1.0, 2.0 }
    loc:requires_grad_()
    scale:requires_grad_()
    lt.seed(1)
    local x = D.Normal(loc, scale):rsample { 5 }
    x:sum():backward()
    near({ 5, 5 }, loc.grad)
    local z = (x:detach() - loc:detach()) / scale:detach()
    near(z:sum(1):tolist(), scale.grad)
  end)

  it("has those of a Cholesky factor, and of a covariance", function()
    local loc = t { 0.0, 0.0 }:requires_grad_()
    local m = t { { 2.0, 0.5 }, { 0.5, 1.0 } }:requires_grad_()
    local x = D.MultivariateNormal(loc, { covariance_matrix = m }):rsample()
    assert.same({ 2 }, x.shape)
    x:square():sum():backward()
    assert.is_true(m.grad:abs():sum():item() > 0)
  end)

  it("has PyTorch's derivatives of Gamma by the concentration, of a sample of rate 1", function()
    for _, case in ipairs(gamma) do
      local alpha, x = t { case[1] }, t { case[2] }
      local got = derivative(alpha, x, x:log()) * x
      -- PyTorch's own are approximations between 0.8 < x and alpha < 8.
      near({ case[3] }, got, (case[1] > 8 or case[2] < 0.2) and 1e-9 or 1e-3)
    end
  end)

  it("of Gamma has the derivative of the quantile by the concentration", function()
    -- Of concentration 1 and 2, at x: -(dP / da) / p, dP / da by central differences of P, a sum
    -- of its series.
    local function cdf(a, x)
      local term, sum = 1 / a, 0
      for k = 1, 200 do sum, term = sum + term, term * x / (a + k) end
      return sum * math.exp(a * math.log(x) - x - t(a):lgamma():item())
    end
    for _, case in ipairs { { 1.0, 0.3 }, { 1.0, 3.0 }, { 2.0, 1.5 }, { 0.3, 0.9 }, { 6, 9 } } do
      local a, x, h = case[1], case[2], 1e-5
      local density = math.exp((a - 1) * math.log(x) - x - t(a):lgamma():item())
      local want = -(cdf(a + h, x) - cdf(a - h, x)) / (2 * h) / density
      near({ want }, derivative(t { a }, t { x }, t { math.log(x) }) * x, 1e-7)
    end
  end)

  -- Tolerances are four standard errors or more.
  it("has the gradients of Dirichlet's moments by concentrations", function()
    lt.seed(3)
    local a = t { 1.5, 2.0, 0.7 }:requires_grad_()
    D.Dirichlet(a):rsample { 1500 }:select(-1, 1):mean():backward()
    -- mean a1 / A: (A - a1) / A^2, -a1 / A^2
    local total = 4.2
    near({ 2.7 / total ^ 2, -1.5 / total ^ 2, -1.5 / total ^ 2 }, a.grad, 0.01)
  end)

  it("has the gradients of Beta's moments by concentrations", function()
    lt.seed(3)
    local b1, b0 = t(0.6):requires_grad_(), t(9.0):requires_grad_()
    D.Beta(b1, b0):rsample { 1500 }:mean():backward()
    near({ 9 / 9.6 ^ 2 }, b1.grad, 0.01)
    near({ -0.6 / 9.6 ^ 2 }, b0.grad, 0.01)
  end)

  it("has the gradients of StudentT's moments by df", function()
    lt.seed(3)
    local df = t(9.0):requires_grad_()
    D.StudentT(df, t(0.0), t(1.0)):rsample { 4000 }:square():mean():backward()
    near({ -2 / 7 ^ 2 }, df.grad, 0.015) -- of df / (df - 2)
  end)

  it("of small concentrations is finite in f32", function()
    lt.seed(1)
    local a = lt.full({ 2000, 2 }, 0.01):requires_grad_()
    local x = D.Dirichlet(a):rsample()
    assert.is_true(x:isfinite():all():item())
    x:square():sum():backward()
    assert.is_true(a.grad:isfinite():all():item())
    assert.is_true(D.Beta(lt.full({ 2000 }, 0.01), 0.01):sample():isfinite():all():item())
  end)

  it("goes through transforms and Independent", function()
    local loc = t { 0.5, -1.0 }:requires_grad_()
    lt.seed(1)
    local p = D.TransformedDistribution(D.Independent(D.Normal(loc, 1.0), 1), D.ExpTransform())
    local x = p:rsample()
    x:sum():backward()
    near(x:tolist(), loc.grad)
    assert.same({ 2 }, p.event_shape)
    assert.same({}, p:log_prob(x:detach()).shape)
  end)

  it("is refused where there is none", function()
    assert.matches("distributions%.Bernoulli: rsample: it has no samples with gradients",
      error_of(function() D.Bernoulli(0.5):rsample() end))
  end)
end)

describe("Distributions", function()
  it("give log_prob gradients, those of lgamma too", function()
    local a = t { 0.7, 3.0 }:requires_grad_()
    D.Gamma(a, 1.0):log_prob(t { 0.5, 2.0 }):sum():backward()
    -- log(x) - digamma(a)
    near({ math.log(0.5) + 1.2200235536979349, math.log(2.0) - 0.9227843350984672 }, a.grad)
  end)

  it("refuse parameters that PyTorch refuses", function()
    local nan <const>, inf <const> = 0 / 0, math.huge
    for _, case in ipairs {
      { "Normal: scale must be greater than 0: got -1.0", D.Normal, 0.0, -1.0 },
      { "Normal: loc must not be NaN: got nan", D.Normal, nan, 1.0 },
      { "Laplace: scale must be greater than 0: got 0.0", D.Laplace, 0.0, 0.0 },
      { "Gamma: concentration must be greater than 0: got nan", D.Gamma, t { 1.0, nan }, 1.0 },
      { "Gamma: rate must be greater than 0: got -2.0", D.Gamma, 1.0, -2.0 },
      { "Beta: concentration0 must be greater than 0: got -inf", D.Beta, 1.0, -inf },
      { "Exponential: rate must be greater than 0: got nan", D.Exponential, nan },
      { "Uniform: high must be above low: got 1.0", D.Uniform, 1.0, 1.0 },
      { "Bernoulli: probs must be in 0..1: got nan", D.Bernoulli, nan },
      { "Bernoulli: logits must not be NaN: got nan", D.Bernoulli, { logits = nan } },
      { "Categorical: probs must be finite, at least 0, and not all 0: got -1.0", D.Categorical,
        t { -1.0, 2.0 } },
      { "Categorical: logits must be below infinity, and not all -infinity", D.Categorical,
        { logits = t { inf, 0.0 } } },
      { "MultivariateNormal: covariance_matrix must be symmetric and positive definite",
        D.MultivariateNormal, t { 0.0, 0.0 },
        { covariance_matrix = t { { 1.0, 2.0 }, { 2.0, 1.0 } } } },
      { "MultivariateNormal: scale_tril must be a lower triangle with a diagonal above 0",
        D.MultivariateNormal, t { 0.0, 0.0 }, { scale_tril = t { { 1.0, 2.0 }, { 2.0, 1.0 } } } },
    } do
      assert.matches("distributions." .. case[1], error_of(case[2], case[3], case[4]), 1, true)
    end
  end)

  it("refuse values that they cannot have", function()
    for _, case in ipairs {
      { "Normal: value must not be NaN: got nan", D.Normal(0.0, 1.0), 0 / 0 },
      { "Uniform: value must be in low..high: got 2.0", D.Uniform(0.0, 1.0), t { 0.5, 2.0 } },
      { "Gamma: value must be at least 0: got -1.0", D.Gamma(1.0, 1.0), -1.0 },
      { "Beta: value must be in 0..1: got 1.5", D.Beta(1.0, 1.0), 1.5 },
      { "Bernoulli: value must be 0 or 1: got 0.5", D.Bernoulli(0.5), 0.5 },
      { "Categorical: value must be one of 0..K - 1: got 2", D.Categorical(t { 0.5, 0.5 }),
        lt.tensor { 0, 2 } },
    } do
      local message = error_of(function() case[2]:log_prob(case[3]) end)
      assert.matches("distributions." .. case[1], message, 1, true)
    end
  end)

  it("with validate_args = false draw NaN of what is not a concentration", function()
    local unchecked <const> = { validate_args = false }
    local a = t { 0 / 0, -1.0, math.huge, 2.0 }
    local x = D.Gamma(a, 1.0, unchecked):sample():tolist()
    assert.same({ true, true, math.huge, true }, { x[1] ~= x[1], x[2] ~= x[2], x[3], x[4] > 0 })
    local b = D.Beta(a, 1.0, unchecked):sample():tolist()
    assert.same({ true, true, 1.0, true }, { b[1] ~= b[1], b[2] ~= b[2], b[3], b[4] < 1 })
    D.Distribution.set_default_validate_args(false)
    D.Normal(0.0, -1.0)
    D.Distribution.set_default_validate_args(true)
    assert.matches("bernoulli: probabilities must be in 0..1: got nan",
      error_of(function() D.Bernoulli(0 / 0, unchecked):sample() end), 1, true)
  end)

  it("of an asynchronous device are checked without waiting for it", function()
    local scale = lt.tensor { 1.0, -1.0 }:to "fake"
    D.Normal(0.0, scale)
    local line = debug.getinfo(1, "l").currentline - 1
    scale:sum():item()
    local message = error_of(D.Normal, 0.0, lt.ones(2):to "fake")
    assert.matches("distributions.Normal: scale must be greater than 0 (of ", message, 1, true)
    assert.matches(("distributions_spec.lua:%d)"):format(line), message, 1, true)
  end)

  it("give the gradient of a covariance as a symmetric matrix", function()
    local m = t { { 2.0, 0.5 }, { 0.5, 1.0 } }:requires_grad_()
    local p = D.MultivariateNormal(t { 0.0, 0.0 }, { covariance_matrix = m })
    p:log_prob(t { 1.0, 2.0 }):backward()
    -- (S^-1 x x^T S^-1 - S^-1) / 2, of S^-1 = {{4, -2}, {-2, 8}} / 7
    near({ -2 / 7, 1 / 7, 1 / 7, 70 / 49 }, m.grad)
  end)

  it("take integers as floating numbers", function()
    local p = D.Binomial(lt.tensor { 4, 10 }, 0.5)
    assert.same({ 2.0, 5.0 }, p.mean:tolist())
    near({ math.log(6 / 16), math.log(252 / 1024) }, p:log_prob(lt.tensor { 2, 5 }), 1e-5)
    assert.equal("f64", D.Normal(lt.tensor { 3, 4 }, t { 2.0 }):sample().dtype)
  end)

  it("take arguments by name", function()
    local p = D.Normal { loc = t { 0.5 }, scale = t { 2.0 }, validate_args = false }
    assert.same({ 0.5, 2.0, false }, { p.loc:item(), p.scale:item(), p.validate_args })
    local m = lt.eye(2)
    near({ 1, 1 }, D.MultivariateNormal { loc = lt.zeros(2), covariance_matrix = m }.variance)
    assert.matches("MultivariateNormal: loc is given by place and by name",
      error_of(D.MultivariateNormal, m[1], { loc = m[1], covariance_matrix = m }), 1, true)
    assert.matches("Normal: unknown option 'scal'",
      error_of(D.Normal, { loc = 0.0, scal = 1.0 }), 1, true)
    assert.matches("distributions.Normal: loc must be a tensor or a number: got a table with loc: "
      .. "it is an argument, not an option: write its value alone",
      error_of(D.Normal, { loc = 0.0 }, 1.0), 1, true)
  end)

  it("read properties with the gradients of that moment", function()
    local scale = t { 2.0 }:requires_grad_()
    local p = D.Weibull(scale, t { 1.0 })
    local _ <close> = lt.no_grad()
    assert.is_false(p.mean.requires_grad)
    lt.set_grad_enabled(true)
    assert.is_true(p.mean.requires_grad)
  end)

  it("of counts have those of large parameters", function()
    lt.seed(2)
    local x = D.Poisson(t { 5000.0 }):sample { 4000 }
    near({ 5000 }, x:mean(1), 1e-3)
    near({ 5000 }, x:var(1), 0.1)
    local y = D.Binomial(t { 3000 }, t { 0.3 }):sample { 4000 }
    near({ 900 }, y:mean(1), 2e-3)
    near({ 630 }, y:var(1), 0.1)
    assert.same({ 0, 7, 0 }, D.Binomial(7, t { 0.0, 1.0, 0.0 }):sample():tolist())
  end)

  it("take probabilities or logits, and ids of any shape", function()
    local p = D.Categorical { logits = t { 0.0, 0.0, 0.0, 0.0 } }
    near({ -math.log(4), -math.log(4) }, p:log_prob(lt.tensor { 3, 0 }))
    assert.equal("i64", p:sample({ 2, 3 }).dtype)
    assert.same({ 2, 3 }, p:sample({ 2, 3 }).shape)
    assert.matches("distributions%.Bernoulli: either probs or logits is needed",
      error_of(D.Bernoulli))
  end)

  it("say what does not fit", function()
    assert.matches("distributions%.Normal: the shapes of the parameters do not broadcast",
      error_of(D.Normal, lt.ones(2), lt.ones(3)))
    assert.matches("distributions%.Normal: scale must be a tensor or a number: got nil",
      error_of(D.Normal, 1.0))
    assert.matches("kl_divergence: it is not known between",
      error_of(D.kl_divergence, D.Normal(0, 1), D.Laplace(0, 1)))
  end)
end)
