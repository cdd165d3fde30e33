-- spec/ops/histogram_spec.lua: lt.histogram, lt.histogramdd, lt.frexp and lt.nextafter.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local x = lt.tensor{0.0, 0.5, 1.0, 1.5, 2.0, 2.0, 7.0}

describe("lt.histogram", function()
  it("counts between edges, the last one included", function()
    local hist, edges = lt.histogram(x, 2, {range = {0, 2}})
    assert.same({2, 4}, hist:tolist())
    assert.same({0, 1, 2}, edges:tolist())
    assert.same({3, 3, 1}, (x:histogram(lt.tensor{0, 1.25, 3.5, 7})):tolist())
    hist, edges = lt.histogram(x, 7)
    assert.same({2, 2, 2, 0, 0, 0, 1}, hist:tolist())
    assert.equal(7, edges[8]:item())
    assert.same({-0.5, 0.5}, select(2, lt.histogram(lt.zeros(3), 1)):tolist())
  end)

  it("adds weights and divides by widths", function()
    local w = lt.tensor{1.0, 2, 3, 4, 5, 6, 7}
    assert.same({3, 18}, (lt.histogram(x, 2, {range = {0, 2}, weight = w})):tolist())
    local density, edges = lt.histogram(x, lt.tensor{0.0, 1, 4, 8}, {density = true})
    assert(math.abs((density * edges:diff()):sum():item() - 1) < 1e-6)
    assert.matches("histogram: weight is %[2%], x has %[7%] values",
      error_of(lt.histogram, x, 2, {weight = lt.ones(2)}))
    assert.matches("histogram: no bins from 3 to 1", error_of(lt.histogram, x, 2, {range = {3, 1}}))
    assert.matches("histogram: x must be floating, got i64",
      error_of(lt.histogram, lt.arange(3), 2))
  end)
end)

describe("lt.histogramdd", function()
  it("counts points in boxes", function()
    local points = lt.tensor{{0.0, 1}, {1, 0}, {2, 0}, {2, 2}, {9, 9}}
    local hist, edges = lt.histogramdd(points, {2, 3}, {range = {0, 2, 0, 3}})
    assert.same({{0, 1, 0}, {2, 0, 1}}, hist:tolist())
    assert.same({{0, 1, 2}, {0, 1, 2, 3}}, {edges[1]:tolist(), edges[2]:tolist()})
    local other = lt.histogramdd(points, {lt.tensor{0.0, 1, 2}, lt.tensor{0.0, 1, 2, 3}})
    assert.same(hist:tolist(), other:tolist())
    assert.matches("histogramdd: bins of 1 columns: x is %[5, 2%]",
      error_of(lt.histogramdd, points, {2}))
    assert.matches("histogramdd: needs points", error_of(lt.histogramdd, x, 2))
  end)
end)

describe("lt.frexp", function()
  it("splits numbers of all sizes, exactly", function()
    for _, dtype in ipairs{"f32", "f64", "f16"} do
      local values = {1, 0.75, -8, 0.1, 65504, 6e-8, 3}
      local y = lt.tensor(values, {dtype = "f64"}):to(dtype)
      local m, e = lt.frexp(y)
      assert.same({dtype, "i32"}, {m.dtype, e.dtype})
      assert.same(y:tolist(), lt.ldexp(m:to "f64", e):tolist())
      assert.is_true(m:abs():ge(0.5):logical_and(m:abs():lt(1)):all():item())
    end
    local m, e = lt.frexp(lt.tensor({0, 1 / 0, 5e-324, 1.7e308}, {dtype = "f64"}))
    assert.same({0, 1 / 0, 0.5}, {m[1]:item(), m[2]:item(), m[3]:item()})
    assert.same({0, 0, -1073, 1024}, e:tolist())
  end)
end)

describe("lt.nextafter", function()
  it("is the neighbour of each number, found again on the way back", function()
    for dtype, largest in pairs{f32 = 0x1.fffffep127, f64 = 0x1.fffffffffffffp1023, f16 = 65504,
      bf16 = 0x1.fep127} do
      local inf = lt.tensor({math.huge}, {dtype = dtype})
      local y = lt.tensor({0, 1, -1, 2, 3, 0.1, largest, -largest}, {dtype = "f64"}):to(dtype)
      local up = y:nextafter(inf)
      assert.is_true(up:gt(y):all():item(), dtype)
      assert.same(y:tolist(), up:nextafter(-inf):tolist())
      local middle = y:double() / 2 + up:double() / 2 -- rounds to one of the two: nothing between
      local rounded = middle:to(dtype)
      assert.is_true(rounded:eq(y):logical_or(rounded:eq(up)):all():item(), dtype)
      assert.equal(math.huge, up[7]:item())
    end
    assert.equal(2 ^ -149, lt.nextafter(lt.zeros(1), lt.ones(1)):item())
    assert.equal(1, lt.nextafter(lt.ones(1), lt.ones(1)):item())
    assert.matches("nextafter: needs two floating tensors of one dtype, got f32 and f64",
      error_of(lt.nextafter, lt.ones(1), lt.ones(1):double()))
  end)
end)
