-- spec/ops/composites_spec.lua: what is particular about ops that are made of others: forms of
-- calls, defaults, special values, errors. Their gradients: structured_spec.lua; values on random
-- inputs: spec/parity.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local F = lt.nn.functional

local function list(x) return x:tolist() end
local function shape(x) return x.shape end

describe("lt.linspace", function()
  it("ends exactly at the last number", function()
    assert.same({0, 0.25, 0.5, 0.75, 1}, list(lt.linspace(0, 1, 5)))
    local y = lt.linspace(-1, 0.3, 7, {dtype = "f64"})
    assert.equal("f64", y.dtype)
    assert.equal(0.3, y[7]:item())
    assert.same({3}, list(lt.linspace(3, 9, 1)))
    assert.same({0}, shape(lt.linspace(3, 9, 0)))
  end)

  it("refuses integers and negative steps", function()
    assert.matches("linspace: steps must be 0 or more, got %-1", error_of(lt.linspace, 0, 1, -1))
    assert.matches("linspace: needs a floating dtype, got i64",
      error_of(lt.linspace, 0, 1, 3, {dtype = "i64"}))
  end)
end)

describe("lt.eye", function()
  it("is square, or as wide as asked", function()
    assert.same({{1, 0}, {0, 1}}, list(lt.eye(2)))
    assert.same({{1, 0, 0}, {0, 1, 0}}, list(lt.eye(2, 3, {dtype = "i64"})))
    assert.is_true(lt.eye(2, {requires_grad = true}).requires_grad)
  end)
end)

describe("operators of bits", function()
  it("work on integers as on bools", function()
    local x = lt.tensor{12, 5}
    assert.same({8, 4}, list(x & lt.tensor{10, 6}))
    assert.same({13, 5}, list(x | 1))
    assert.same({-13, -6}, list(~x))
    assert.same({48, 20}, list(x << 2))
    assert.same({3, 1}, list(x >> 2))
    assert.same({243}, list(lt.tensor({12}, {dtype = "u8"}):bitwise_not()))
    assert.same({true, false}, list(~lt.tensor{false, true}))
  end)
end)

describe("x:div", function()
  local a, b = lt.tensor{7, -7}, lt.tensor{2, 2}
  it("rounds as rounding_mode says", function()
    assert.same({3, -4}, list(a:div(b, {rounding_mode = "floor"})))
    assert.same({3, -3}, list(a:div(b, {rounding_mode = "trunc"})))
    assert.equal("i64", a:div(2, {rounding_mode = "trunc"}).dtype)
    assert.same({3, -3}, list((a:to "f32"):div(2, {rounding_mode = "trunc"})))
    assert.same({1, -1}, list(lt.div(7, lt.tensor{4, -4}, {rounding_mode = "trunc"})))
    assert.matches("div: argument 'rounding_mode' must be one of floor|trunc, got up",
      error_of(lt.div, a, b, {rounding_mode = "up"}))
    assert.matches("div: unknown option; there is rounding_mode",
      error_of(lt.div, a, b, {rounding = "floor"}))
  end)
end)

describe("x:clamp by tensors", function()
  it("takes bounds that broadcast, with gradients for all", function()
    local x = lt.tensor({-2.0, 0.5, 3.0}, {requires_grad = true})
    local low = lt.tensor({-1.0}, {requires_grad = true})
    local high = lt.tensor({1.0, 1.0, 2.0}, {requires_grad = true})
    local y = x:clamp(low, high)
    assert.same({-1, 0.5, 2}, list(y))
    y:sum():backward()
    assert.same({0, 1, 0}, list(x.grad))
    assert.same({1}, list(low.grad))
    assert.same({0, 0, 1}, list(high.grad))
    assert.same({-2, 0.5, 2}, list(x:detach():clamp({max = high:detach()})))
  end)
end)

describe("x:masked_fill by a tensor", function()
  it("passes the gradient on to the value", function()
    local x, v = lt.zeros(3), lt.tensor(2.0, {requires_grad = true})
    local y = x:masked_fill(lt.tensor{true, false, true}, v)
    assert.same({2, 0, 2}, list(y))
    y:sum():backward()
    assert.equal(2, v.grad:item())
    assert.matches("masked_fill: the value must be a number or a tensor of shape %[%], got %[2%]",
      error_of(function() return x:masked_fill(lt.tensor(true), lt.zeros(2)) end))
  end)
end)

describe("reductions of rows and columns", function()
  it("of lengths around those of lanes reach each element once", function()
    for _, n in ipairs{1, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 130} do
      local x = lt.arange(3 * n):to("f32"):reshape{3, n} -- all sums are exact
      local want = {}
      for row = 0, 2 do want[row + 1] = n * (2 * row * n + n - 1) // 2 end
      for _, y in ipairs{x:sum(2), x:t():contiguous():sum(1), x:to("i64"):sum(2)} do
        assert.same(want, y:tolist())
      end
      assert.same({n - 1, 2 * n - 1, 3 * n - 1}, x:amax(2):tolist())
      assert.same({0, n, 2 * n}, x:t():contiguous():amin(1):tolist())
    end
  end)
end)

describe("the option dtype", function()
  it("is the dtype of the result, integers wrap", function()
    local x = lt.tensor({300, 300}, {dtype = "i64"})
    for _, name in ipairs{"sum", "prod", "nansum", "cumsum", "cumprod"} do
      for dtype, want in pairs{i32 = {600, 90000}, u8 = {88, 144}} do
        local y = x[name](x, 1, {dtype = dtype}):reshape(-1)
        assert.same({dtype, want[name:find "prod" and 2 or 1]}, {y.dtype, y[-1]:item()})
      end
    end
    assert.same({600, "i32"}, {lt.tensor{300.7, 300.7}:sum{dtype = "i32"}:item(),
      x:sum{dtype = "i32"}.dtype})
    assert.is_true(x:sum{dtype = "bool"}:item())
    for _, name in ipairs{"mean", "nanmean"} do
      assert.matches(name .. ": dtype must be floating, got i32", error_of(function()
        return x[name](x, {dtype = "i32"})
      end), 1, true)
    end
  end)

  it("converts before reductions, scans and softmax", function()
    local x = lt.tensor({200, 100}, {dtype = "u8"})
    assert.equal(300, x:sum{dtype = "f32"}:item())
    assert.equal("f64", x:mean{dtype = "f64"}.dtype)
    assert.equal("f64", x:to("f32"):softmax(1, {dtype = "f64"}).dtype)
    assert.matches("amax: unknown option 'dtype'", error_of(function()
      return x:amax{dtype = "f32"}
    end))
  end)
end)

describe("lt.allclose, lt.equal", function()
  it("give a boolean", function()
    local a = lt.tensor{1.0, 0 / 0}
    assert.is_true(lt.allclose(a, a, {equal_nan = true}))
    assert.is_false(a:allclose(a))
    assert.is_true(lt.tensor{1.0}:allclose(lt.tensor{1.000001}))
    assert.is_true(lt.equal(lt.ones(2), lt.ones(2)))
    assert.is_false(lt.equal(lt.ones(2), lt.ones(1)))
    assert.is_false(lt.ones(2):equal(lt.zeros(2)))
  end)
end)

describe("lt.einsum", function()
  local a = lt.arange(6):to("f64"):reshape{2, 3}
  local b = lt.arange(12):to("f64"):reshape{3, 4}
  local batch = lt.arange(24):to("f64"):reshape{2, 3, 4}
  it("multiplies, sums, transposes and takes diagonals", function()
    assert.same(list(a:matmul(b)), list(lt.einsum("ij,jk->ik", {a, b})))
    assert.same(list(a:matmul(b)), list(lt.einsum("ij, jk", {a, b})))
    assert.same(list(a:t()), list(lt.einsum("ij->ji", {a})))
    assert.equal(15, lt.einsum("ij->", {a}):item())
    assert.same({0, 5}, list(lt.einsum("ii->i", {b:narrow(1, 1, 2):narrow(2, 1, 2)})))
    assert.same(list(a:matmul(batch)[1]), list(lt.einsum("ij,bjk->bik", {a, batch})[1]))
    assert.same(list((batch * batch):sum{2, 3}), list(lt.einsum("b...,b...->b", {batch, batch})))
    assert.same(list(a:matmul(b):matmul(b:t())), list(lt.einsum("ij,jk,lk->il", {a, b, b})))
    assert.same(list(a:reshape{2, 1, 3} * a), list(lt.einsum("ik,jk->ijk", {a, a})))
  end)

  it("names what does not fit", function()
    assert.matches("einsum: 'ij' names 2 dims of %[2, 3, 4%]",
      error_of(lt.einsum, "ij->i", {batch}))
    assert.matches("einsum: 'z' is in no operand", error_of(lt.einsum, "ij->z", {a}))
    assert.matches("einsum: 'ij,jk' names more operands than the 1 given",
      error_of(lt.einsum, "ij,jk", {a}))
  end)
end)

describe("lt.tensordot", function()
  it("sums the last and first dims, or those that are named", function()
    local a, b = lt.arange(24):to("f32"):reshape{2, 3, 4}, lt.arange(24):to("f32"):reshape{3, 4, 2}
    assert.same({{1012, 1078}, {2596, 2806}}, list(lt.tensordot(a, b)))
    assert.same({2, 2}, shape(lt.tensordot(a, b, {{2, 3}, {1, 2}})))
    assert.same({2, 3, 4, 3, 4, 2}, shape(lt.tensordot(a, b, 0)))
    assert.matches("tensordot: sizes %[4%] and %[3%] of the summed dims differ",
      error_of(lt.tensordot, a, b, 1))
  end)
end)

describe("lt.meshgrid", function()
  it("repeats vectors along the dims of the others", function()
    local a, b = lt.tensor{1, 2}, lt.tensor{3, 4, 5}
    local grid = lt.meshgrid{a, b}
    assert.same({{1, 1, 1}, {2, 2, 2}}, list(grid[1]))
    assert.same({{3, 4, 5}, {3, 4, 5}}, list(grid[2]))
    assert.same({3, 2}, shape(lt.meshgrid({a, b}, {indexing = "xy"})[1]))
  end)
end)

describe("counts that are too large", function()
  it("are refused before anything is made", function()
    local x, image, most = lt.ones(4, 4), lt.ones(1, 4, 2, 2), math.maxinteger
    for text, f in pairs{
      ["tensor_split: n must be at most 65536, got 4294967296 (dim 1 of [4, 4])"] =
        function() return x:tensor_split(1 << 32) end,
      ["pixel_shuffle: upscale_factor must be at most 2147483647: got 4294967296"] =
        function() return lt.pixel_shuffle(image, 1 << 32) end,
      ["interpolate: size must be at most 16777216: got 4294967296"] =
        function() return lt.interpolate(image, {size = 1 << 32}) end,
      ["interpolate: scale_factor = 1e+30 makes a size of 2e+30 of [1, 4, 2, 2]: at most 16777216"]
        = function() return lt.interpolate(image, {scale_factor = 1e30}) end,
      ["nn.LSTM: num_layers must be at most 65536: got 4294967296"] =
        function() return lt.nn.LSTM(4, 4, {num_layers = 1 << 32}) end,
      ["pad: {9223372036854775807, 9223372036854775807} does not fit dim 2 of [4, 4]"] =
        function() return x:pad{most, most} end,
      ["pad: {-9223372036854775808, 0} does not fit dim 2 of [4, 4]"] =
        function() return x:pad{math.mininteger, 0} end,
      ["pad: impossible shape [8589934596, 8589934596]"] =
        function() return x:pad{1 << 32, 1 << 32, 1 << 32, 1 << 32} end,
      ["(padding [9223372036854775807, 9223372036854775807]"] =
        function() return lt.nn.functional.unfold(image, 2, {padding = most}) end,
      ["diag: diagonal must be in -2147483647..2147483647, got 9223372036854775807"] =
        function() return lt.ones(3):diag(most) end,
    } do
      assert.matches(text, error_of(f), 1, true)
    end
  end)

  it("and below 0 are refused where no count is another one", function()
    assert.matches("eye: impossible shape [1, -1]", error_of(lt.eye, 1, -1), 1, true)
    assert.matches("max_pool2d: stride must be at least 1, got {-1, -1}", error_of(function()
      return lt.ones(1, 4, 4):max_pool2d(2, {stride = -1})
    end), 1, true)
  end)
end)

describe("x:tensor_split", function()
  it("cuts into n parts or between places", function()
    local function sizes(parts)
      local n = {}
      for k, part in ipairs(parts) do n[k] = part:size(1) end
      return n
    end
    assert.same({3, 2, 2}, sizes(lt.arange(7):tensor_split(3)))
    assert.same({1, 3, 3}, sizes(lt.arange(7):tensor_split{1, 4}))
    assert.same({2, 0, 5}, sizes(lt.arange(7):tensor_split{2, 2}))
  end)
end)

describe("medians and modes", function()
  it("take the lower of the middle two, NaN first", function()
    assert.equal(2, lt.tensor{4.0, 1.0, 3.0, 2.0}:median():item())
    local x = lt.tensor{{1.0, 0 / 0, 3.0}, {5.0, 4.0, 6.0}}
    local v, at = x:median(2)
    assert.is_true(v[1]:isnan():item())
    assert.same({1, 0}, list(at))
    assert.same({1, 5}, list((x:nanmedian(2))))
    assert.equal(4, x:nanmedian():item())
    local most, where = lt.tensor{3, 1, 3, 1, 2}:mode()
    assert.equal(1, most:item())
    assert.equal(3, where:item())
  end)

  it("interpolate quantiles", function()
    local x = lt.tensor{0.0, 1.0, 2.0, 3.0}
    assert.same({0, 0.75, 3}, list(x:quantile(lt.tensor{0, 0.25, 1.0})))
    assert.equal(1.5, x:quantile(0.5):item())
    assert.equal(2, x:quantile(0.5, {interpolation = "higher"}):item())
    assert.equal(0, lt.tensor{0.0, 0 / 0}:quantile(0.5):isfinite():to("i64"):item())
  end)
end)

describe("lt.unique", function()
  it("gives values, places and counts as asked", function()
    local x = lt.tensor{{3, 1}, {3, 2}}
    assert.same({1, 2, 3}, list((x:unique())))
    local v, inverse, counts = x:unique{return_inverse = true, return_counts = true}
    assert.same({{2, 0}, {2, 1}}, list(inverse))
    assert.same({1, 1, 2}, list(counts))
    local _, only = x:unique{return_counts = true}
    assert.same({1, 1, 2}, list(only))
    assert.same({3}, shape(v))
    local runs = lt.tensor{1, 1, 2, 1}:unique_consecutive()
    assert.same({1, 2, 1}, list(runs))
    assert.same({0}, shape((lt.zeros(0):unique())))
  end)
end)

describe("scatter", function()
  local index = lt.tensor{{0, 1, 1}}
  it("writes tensors and numbers, and adds or multiplies", function()
    assert.same({{5, 5, 0}}, list(lt.zeros(1, 3):scatter(index, 5, {dim = 2})))
    local x, s = lt.full({1, 3}, 2.0), lt.tensor{{1.0, 3.0, 4.0}}
    assert.same({{1, 4, 2}}, list(x:scatter(2, index, s)))
    assert.same({{3, 9, 2}}, list(x:scatter(index, s, {dim = 2, reduce = "add"})))
    assert.same({{2, 24, 2}}, list(x:scatter(index, s, {dim = 2, reduce = "multiply"})))
    x:scatter_(2, index, s)
    assert.same({{1, 4, 2}}, list(x))
    assert.matches("scatter: reduce must be add or multiply",
      error_of(function() return x:scatter(index, s, {dim = 2, reduce = "mean"}) end))
  end)

  it("shares the gradient of amax among equals", function()
    local x = lt.tensor({1.0, 3.0}, {requires_grad = true})
    local s = lt.tensor({3.0, 3.0, 2.0}, {requires_grad = true})
    local y = x:scatter_reduce(lt.tensor{1, 1, 0}, s, {dim = 1, reduce = "amax"})
    assert.same({2, 3}, list(y))
    y:sum():backward()
    assert.near(1 / 3, x.grad[2]:item(), 1e-6)
    assert.near(1 / 3, s.grad[1]:item(), 1e-6)
    assert.equal(1, s.grad[3]:item())
  end)
end)

describe("F.fold and F.unfold", function()
  it("are each other's inverse where windows do not overlap", function()
    local x = lt.arange(32):to("f32"):reshape{1, 2, 4, 4}
    local columns = F.unfold(x, 2, {stride = 2})
    assert.same({1, 8, 4}, shape(columns))
    assert.same(list(x), list(F.fold(columns, 4, 2, {stride = 2})))
    assert.matches("im2col: no window of %[5, 5%] fits into %[4, 4%]", error_of(F.unfold, x, 5))
  end)
end)

describe("histc and bincount", function()
  it("count what is in range", function()
    assert.same({1, 2}, list(lt.tensor{0.0, 1.0, 2.0, 5.0}:histc(2, 0, 2)))
    assert.same({0, 2.5}, list(lt.tensor{1, 1}:bincount(lt.tensor{0.5, 2.0})))
    assert.same({0, 1, 0}, list(lt.tensor{1}:bincount{minlength = 3}))
    assert.matches("bincount: counts integers from 0, got %-1",
      error_of(function() return lt.tensor{-1}:bincount() end))
  end)
end)

describe("second derivatives", function()
  it("exist of running products with zeros", function()
    local x = lt.tensor({2.0, 0.0, 3.0}, {dtype = "f64", requires_grad = true})
    local y = x:cumprod(1):sum() -- x1 + x1 x2 + x1 x2 x3
    local g = lt.grad(y, {x}, {create_graph = true})[1]
    assert.same({1, 8, 0}, list(g:detach()))
    assert.same({4, 0, 2}, list(lt.grad(g[2], {x})[1])) -- by x2: x1 + x1 x3
  end)
end)
