-- spec/distributions/distributions_spec.lua: lt.distributions against torch.distributions
-- (torch_values.py says how the numbers were made), samples, gradients.

local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require "spec.distributions.torch_values"

local D <const> = lt.distributions

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
    if value - value ~= 0 then
      assert.equal(value, list[i])
    else
      assert.near(value, list[i], (tolerance or 1e-10) * math.max(1, math.abs(value)))
    end
  end
end

for _, case in ipairs(recorded) do
  describe("distributions." .. case[1], function()
    local p, q = made(case[1]), made(case[2])

    it("has PyTorch's log_prob, entropy, mean and variance", function()
      near(case[4], p:log_prob(t(case[3])))
      near(case[5], p:entropy())
      if case[6] then near(case[6], p.mean) end
      if case[7] then near(case[7], p.variance) end
    end)

    it("has PyTorch's divergence from " .. case[2], function()
      near(case[8], D.kl_divergence(p, q))
    end)

    it("has samples of that mean and variance, the same for a seed", function()
      lt.seed(5)
      local n = 20000
      local x = p:sample { n }:to "f64"
      lt.seed(5)
      assert.is_true(x:eq(p:sample { n }:to "f64"):all():item())
      assert.same({ n, table.unpack(p:shape_of()) }, x.shape)
      assert.is_false(x.requires_grad)
      if case[6] then
        local spread = math.sqrt(math.max(table.unpack(case[7])))
        near(case[6], x:mean(1), 0.05 * math.max(1, spread))
        near(case[7], x:var(1), 0.1 * math.max(1, spread))
      end
    end)
  end)
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

  it("is refused where there is none", function()
    assert.matches("distributions%.Bernoulli: rsample: it has no samples with gradients",
      error_of(function() D.Bernoulli(0.5):rsample() end))
    local a = t { 2.0 }:requires_grad_()
    assert.matches("distributions%.Gamma: rsample: samples have no gradient by the concentration",
      error_of(function() D.Gamma(a, 1.0):rsample() end))
    assert.same({ 1 }, D.Gamma(a, 1.0):sample().shape)
  end)
end)

describe("Distributions", function()
  it("give log_prob gradients, those of lgamma too", function()
    local a = t { 0.7, 3.0 }:requires_grad_()
    D.Gamma(a, 1.0):log_prob(t { 0.5, 2.0 }):sum():backward()
    -- log(x) - digamma(a)
    near({ math.log(0.5) + 1.2200235536979349, math.log(2.0) - 0.9227843350984672 }, a.grad)
  end)

  it("take probabilities or logits, and ids of any shape", function()
    local p = D.Categorical { logits = t { 0.0, 0.0, 0.0, 0.0 } }
    near({ -math.log(4), -math.log(4) }, p:log_prob(lt.tensor { 3, 0 }))
    assert.equal("i64", p:sample({ 2, 3 }).dtype)
    assert.same({ 2, 3 }, p:sample({ 2, 3 }).shape)
    assert.matches("distributions%.Bernoulli: either probs or logits is needed",
      error_of(D.Bernoulli, {}))
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
