-- spec/ops/torch_rules_spec.lua: shapes, dtypes and gradients where PyTorch's rule is not the
-- obvious one.
local lt = require "ltrain"
local raises = require "spec.bind.raises"

local inf <const>, nan <const> = math.huge, 0 / 0
local function list(x) return x:tolist() end
local function leaf(values, dtype)
  return lt.tensor(values, {dtype = dtype or "f32", requires_grad = true})
end

describe("remainder and floor_divide", function()
  it("are exact where the quotient is large or inexact", function()
    local a = lt.tensor({1e9, 5, -5, -4, 5, 1e38}, {dtype = "f32"})
    local b = lt.tensor({7, inf, inf, 2, -3, 3}, {dtype = "f32"})
    assert.same({6.0, 5.0, inf, -0.0, -1.0, (1e38 // 1 - 1e38 // 1) + 2.0}, list(a % b))
    assert.same({142857136.0, 0.0, -1.0, -2.0, -2.0}, list((a // b)({1, 5})))
    local d = lt.tensor({1e20, 1.0, -1.0}, {dtype = "f64"})
    assert.equal(13.0, (d % 43)[1]:item())
    assert.equal(1.0 - 9 * 0.1, (d % 0.1)[2]:item() + (1.0 - 9 * 0.1) - math.fmod(1.0, 0.1))
    assert.equal(9.0, (d // 0.1)[2]:item())
    assert.is_true((d % 0.1)[3]:item() >= 0)
  end)

  it("have the sign of the divisor, and a zero the sign of the dividend", function()
    local x = lt.tensor({-7.0, 7.0, -0.0, -8.0})
    assert.same({1.0, 3.0, -0.0, -0.0}, list(x % 4))
    assert.equal(-inf, 1 / (x % 4)[4]:item())
    assert.equal(-inf, 1 / (x // 4)[3]:item())
  end)

  it("of zero divisors are nan and infinite, in place as well", function()
    local x = lt.tensor({5.0, -5.0, 0.0})
    local r, q = x:clone():remainder_(0.0), x:clone():floor_divide_(0.0)
    for i = 1, 3 do assert.is_true(r[i]:isnan():item()) end
    assert.same({inf, -inf}, list(q({1, 2})))
    assert.is_true(q[3]:isnan():item())
  end)

  it("agree with each other over many values", function()
    for _, dtype in ipairs{"f32", "f64"} do
      local a = (lt.arange(2000, {dtype = dtype}) - 1000) * 1.37
      local b = (lt.arange(2000, {dtype = dtype}) % 17 - 8.3) * 0.31
      local r, q = a % b, a // b
      assert.is_true(r:abs():lt(b:abs()):all():item())
      assert.is_true(q:eq(q:floor()):all():item())
      assert.is_true((q * b + r - a):abs():max():item() < (dtype == "f32" and 1e-3 or 1e-11))
    end
  end)
end)

describe("derivatives at NaN", function()
  it("are 1 of relu, maximum and minimum", function()
    local x = leaf{nan, 1, -1, 0}
    x:relu():sum():backward()
    assert.same({1.0, 1.0, 0.0, 0.0}, list(x.grad))
    for _, f in ipairs{lt.maximum, lt.minimum} do
      local a, b = leaf{nan, 0, nan, 1}, leaf{0, nan, nan, 1}
      f(a, b):sum():backward()
      assert.same({1.0, 1.0, 1.0, 0.5}, list(a.grad))
      assert.same({1.0, 1.0, 1.0, 0.5}, list(b.grad))
    end
  end)
end)

describe("clamp", function()
  it("has the derivative 0 on its bounds", function()
    local x = leaf{0, 1, 2, -1, 3}
    x:clamp(0, 2):sum():backward()
    assert.same({0.0, 1.0, 0.0, 0.0, 0.0}, list(x.grad))
  end)

  it("gives max where min is above it", function()
    assert.same({2.0, 2.0, 2.0}, list(lt.tensor{1.0, 3, 7}:clamp(5, 2)))
  end)

  it("of integers by fractions gives f32, by integers exact integers", function()
    local x = lt.tensor{1, 2, 3}
    local y = x:clamp(1.5, 2.5)
    assert.equal("f32", y.dtype)
    assert.same({1.5, 2.0, 2.5}, list(y))
    assert.equal("i64", x:clamp{min = 2}.dtype)
    local big = lt.tensor{(1 << 53) + 1, math.maxinteger}
    assert.same({(1 << 53) + 1, math.maxinteger - 1}, list(big:clamp(0, math.maxinteger - 1)))
    raises("clamp_: a result of f32 does not fit into a tensor of i64",
      function() x:clamp_(1.5, 2.5) end)
  end)
end)

describe("masked_select", function()
  it("broadcasts both ways and gives a list", function()
    local x = lt.tensor{{1, 2}, {3, 4}}
    assert.same({1, 3}, list(x:masked_select(lt.tensor{true, false})))
    local mask = lt.tensor{{true, false}, {true, true}}
    assert.same({1, 1, 2}, list(lt.tensor{1, 2}:masked_select(mask)))
    assert.same({7, 7}, list(lt.tensor(7):masked_select(lt.tensor{true, true})))
    local leaf_x = leaf{1, 2}
    leaf_x:masked_select(mask):sum():backward()
    assert.same({2.0, 1.0}, list(leaf_x.grad))
  end)
end)

describe("where", function()
  it("takes the category of numbers and the dtype of tensors", function()
    local mask = lt.tensor{true, false}
    assert.equal("bf16", lt.where(mask, lt.tensor(1, {dtype = "bf16"}), 2.5).dtype)
    local y = lt.where(mask, 0.1, lt.tensor({1, 2}, {dtype = "f64"}))
    assert.equal("f64", y.dtype)
    assert.equal(0.1, y[1]:item())
    assert.equal("f32", lt.where(mask, lt.tensor{1, 2}, 2.5).dtype)
    assert.equal("i64", lt.where(mask, 1, 2).dtype)
    assert.equal("f32", lt.where(mask, 1, 2.5).dtype)
    assert.equal("u8", lt.where(mask, lt.tensor({1, 2}, {dtype = "u8"}), 3).dtype)
  end)
end)

describe("logsumexp", function()
  it("of f64 is finite above the range of f32", function()
    assert.equal(1e300, lt.tensor({1e300, 1e300}, {dtype = "f64"}):logsumexp(1):item())
  end)
end)

describe("norm", function()
  it("has the derivative 0 at zeros, whatever p", function()
    for _, p in ipairs{3, 0.5, 1.5, -1, -2, 0, inf, -inf, 1, 2} do
      local x, z = leaf({0, 1, -2}, "f64"), leaf{0, 0}
      x:norm(p):backward()
      z:norm(p):backward()
      assert.same({0.0, 0.0}, list(z.grad))
      assert.equal(0.0, x.grad[1]:item())
      local n = x:norm(p):item()
      if p > 0 and p < inf then
        local wanted = p == 1 and 1 or n ^ (1 - p)
        assert.is_true(math.abs(x.grad[2]:item() - wanted) < 1e-12, "p = " .. p)
      end
    end
    assert.equal(2.0, lt.tensor{0.0, 1, -2}:norm(0):item())
    assert.equal(0.0, lt.tensor{0.0, 1, -2}:norm(-1):item())
  end)
end)

describe("addmm", function()
  it("with beta = 0 ignores its input, NaN and all", function()
    local one, x = lt.ones{2, 2}, leaf{nan, inf}
    local y = lt.addmm(x, one, one, {beta = 0})
    assert.same({{2.0, 2.0}, {2.0, 2.0}}, list(y))
    y:sum():backward()
    assert.same({0.0, 0.0}, list(x.grad))
  end)

  it("of integers gives integers, and refuses fractions", function()
    local one = lt.ones({2, 2}, {dtype = "i64"})
    local y = lt.addmm(lt.tensor{1, 2}, one, one, {beta = 2, alpha = 3})
    assert.equal("i64", y.dtype)
    assert.same({{8, 10}, {8, 10}}, list(y))
    raises("addmm: beta = 2.5 does not fit into a tensor of i64",
      function() lt.addmm(lt.tensor{1, 2}, one, one, {beta = 2.5}) end)
    local big = (1 << 53) + 1
    assert.same({3 * big}, list(lt.tensor{0}:index_add(1, lt.tensor{0}, lt.tensor{big}, 3)))
  end)
end)

describe("tensors without dims", function()
  local five, two = lt.tensor(5.0), lt.tensor(2.0)
  local zero, zeros = lt.tensor(0), lt.tensor{0, 0}

  it("are one element to index_select and gather", function()
    assert.equal(5.0, five:index_select(1, zero):item())
    assert.same({}, five:index_select(1, lt.tensor{0}).shape)
    raises("index_select: the index of a tensor without dims has 1 element, got 2",
      function() five:index_select(1, zeros) end)
    assert.same({5.0, 5.0}, list(five:gather(1, zeros)))
    assert.equal(6.0, lt.tensor{5.0, 6}:gather(1, lt.tensor(1)):item())
  end)

  it("are one element to index_add and scatter_add", function()
    assert.equal(7.0, five:index_add(1, zero, two):item())
    assert.equal(7.0, five:scatter_add(1, zero, two):item())
    assert.equal(10.0, five:scatter_add(1, zeros, lt.tensor{2.0, 3}):item())
    assert.same({5.0, 8.0}, list(lt.tensor{5.0, 6}:scatter_add(1, lt.tensor(1), two)))
  end)

  it("get gradients from them", function()
    local x, s = leaf(5.0), leaf(2.0)
    local y = x:gather(1, zeros):sum() + x:index_select(1, zero)
    y:backward()
    assert.equal(3.0, x.grad:item())
    x.grad = nil
    y = x:scatter_add(1, zero, s) * 3 + x:index_add(1, zero, s)
    y:backward()
    assert.equal(4.0, x.grad:item())
    assert.equal(4.0, s.grad:item())
  end)
end)

describe("linear", function()
  it("takes a weight without outputs", function()
    local x = leaf({{1, 2, 3}, {4, 5, 6}}, "f64")
    local w, bias = leaf({1, 0, -2}, "f64"), leaf(0.5, "f64")
    local y = lt.linear(x, w, bias)
    assert.same({-4.5, -7.5}, list(y))
    assert.equal(-5.0, lt.linear(x[1], w):item())
    local loss = (y * lt.tensor({1, 10}, {dtype = "f64"})):sum()
    loss:backward()
    assert.same({{1.0, 0.0, -2.0}, {10.0, 0.0, -20.0}}, list(x.grad))
    assert.same({41.0, 52.0, 63.0}, list(w.grad))
    assert.equal(11.0, bias.grad:item())
    raises("linear: bias has shape [1], weight [3] [out, in]",
      function() lt.linear(x, w, lt.tensor({1}, {dtype = "f64"})) end)
  end)
end)

describe("max_pool2d", function()
  it("keeps integers", function()
    local x = lt.arange(16):view(1, 1, 4, 4)
    assert.same({{{{5, 7}, {13, 15}}}}, list(x:max_pool2d(2)))
    local low = x - (1 << 53)
    assert.equal("i64", low:max_pool2d(2).dtype)
    assert.equal(5 - (1 << 53), low:max_pool2d(3, 2, 1)[{1, 1, 1, 1}]:item())
    assert.equal("u8", x:to("u8"):max_pool2d(2).dtype)
  end)
end)

describe("arguments", function()
  it("of movedim may stand by place", function()
    assert.same({3, 4, 2}, lt.zeros{2, 3, 4}:movedim(1, 3).shape)
    assert.same({4, 2, 3}, lt.zeros{2, 3, 4}:movedim({1, 2}, {2, 3}).shape)
  end)

  it("of arange must lead somewhere", function()
    raises("arange: step 100 does not lead from 10 to 2", function() lt.arange(10, 2, 100) end)
    raises("arange: step -1 does not lead from 2 to 10", function() lt.arange(2, 10, -1) end)
    assert.same({0}, lt.arange(2, 2, -1).shape)
  end)
end)

describe("assignment", function()
  it("drops leading dims of size 1", function()
    local x = lt.zeros{3, 2}
    x[2] = lt.ones{1, 2}
    x[3] = lt.full({1, 1, 2}, 4)
    assert.same({{0.0, 0.0}, {1.0, 1.0}, {4.0, 4.0}}, list(x))
    x[lt.tensor{0, 2}] = lt.full({1, 1, 2}, 7)
    assert.same({{7.0, 7.0}, {1.0, 1.0}, {7.0, 7.0}}, list(x))
    assert.has_error(function() x[1] = lt.ones{2, 2} end)
    local v, y = leaf{{1, 2}}, lt.zeros{3, 2}
    y[1] = v
    y:sum():backward()
    assert.same({{1.0, 1.0}}, list(v.grad))
  end)

  it("to all of a tensor gives its leaves zeros", function()
    local x, y = leaf{1, 2}, leaf{3, 4}
    local a, b = x * 2, y * 2
    a:fill_(1)
    b[lt.all] = lt.tensor{5.0, 6}
    local loss = (a + b):sum()
    loss:backward()
    assert.same({0.0, 0.0}, list(x.grad))
    assert.same({0.0, 0.0}, list(y.grad))
  end)
end)
