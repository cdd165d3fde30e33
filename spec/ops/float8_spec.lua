-- spec/ops/float8_spec.lua: conversions to and from the 8-bit formats, and their products.
--
-- The values are those of the OCP specification, computed here from its definition; they were
-- compared with torch.float8_e4m3fn and torch.float8_e5m2 of PyTorch 2.15, all bits of both.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local FORMATS <const> = {
  e4m3 = { mantissa = 3, bias = 7, largest = 0x7e, infinite = 0x80 }, -- 0x7f is NaN
  e5m2 = { mantissa = 2, bias = 15, largest = 0x7b, infinite = 0x7c },
}

-- The value of positive bits, by definition.
local function value_of(bits, f)
  local exponent, fraction = bits >> f.mantissa, bits & (1 << f.mantissa) - 1
  if bits == f.infinite then return math.huge end
  if bits > f.largest then return 0 / 0 end
  if exponent == 0 then return fraction * 2.0 ^ (1 - f.bias - f.mantissa) end
  return (1 + fraction / (1 << f.mantissa)) * 2.0 ^ (exponent - f.bias)
end

local function bits_of(list, name)
  return lt.quantize_float8(lt.tensor(list), lt.tensor(1.0), { format = name }):tolist()
end

for name, f in pairs(FORMATS) do
  describe("float8 " .. name, function()
    it("has the values of the specification", function()
      local got = lt.dequantize_float8(lt.arange(256):to "u8", { format = name }):tolist()
      for bits = 0, 127 do
        local want = value_of(bits, f)
        if want ~= want then
          assert.is_true(got[bits + 1] ~= got[bits + 1] and got[bits + 129] ~= got[bits + 129])
        else
          assert.equal(want, got[bits + 1])
          assert.equal(-want, got[bits + 129])
        end
      end
    end)

    it("rounds to the nearest, halves to even, on both sides of 0", function()
      local list, want = {}, {}
      for bits = 0, f.largest - 1 do
        local low, high = value_of(bits, f), value_of(bits + 1, f)
        local middle = (low + high) / 2
        for _, case in ipairs { { low, bits }, { middle * (1 - 2 ^ -20), bits },
          { middle, bits + (bits & 1) }, { middle * (1 + 2 ^ -20), bits + 1 } } do
          table.move({ case[1], -case[1] }, 1, 2, #list + 1, list)
          table.move({ case[2], case[2] | 0x80 }, 1, 2, #want + 1, want)
        end
      end
      assert.same(want, bits_of(list, name))
      assert.same({ 0x80 }, bits_of({ -0.0 }, name))
    end)

    it("saturates, and keeps NaN", function()
      local most = value_of(f.largest, f)
      assert.same({ f.largest, f.largest | 0x80, f.largest, f.largest | 0x80, f.largest, 0x7f },
        bits_of({ most * 1.2, -most * 1.2, math.huge, -math.huge, 3e38, 0 / 0 }, name))
    end)

    it("multiplies by the scale before it rounds, and takes views and halves", function()
      local x = lt.randn(6, 10)
      local scale = lt.tensor(37.5)
      local want = lt.quantize_float8((x:t() * scale):contiguous(), lt.tensor(1.0),
        { format = name })
      assert.same(want:tolist(), lt.quantize_float8(x:t(), scale, { format = name }):tolist())
      local half = x:to "bf16"
      assert.same(lt.quantize_float8(half:to "f32", scale, { format = name }):tolist(),
        lt.quantize_float8(half, scale, { format = name }):tolist())
    end)
  end)
end

describe("scaled_mm", function()
  it("is the product of the values, times the scales, rounded once", function()
    local a, b = lt.randn(16, 32), lt.randn(48, 32)
    local sa, sb = lt.tensor(20.0), lt.tensor(300.0)
    local qa, qb = lt.quantize_float8(a, sa), lt.quantize_float8(b, sb, { format = "e5m2" })
    local exact = lt.dequantize_float8(qa):to "f64"
      :matmul(lt.dequantize_float8(qb, { format = "e5m2" }):t():to "f64") / (20 * 300)
    local y = lt.scaled_mm(qa, qb, 1 / sa, 1 / sb, { format_b = "e5m2" })
    assert.equal("f32", y.dtype)
    assert.is_true(lt.allclose(exact, y:to "f64", { rtol = 1e-5, atol = 1e-5 }))
    local half = lt.scaled_mm(qa, qb, 1 / sa, 1 / sb, { format_b = "e5m2", dtype = "bf16" })
    assert.is_true(half:eq(y:to "bf16"):all():item())
  end)

  it("takes transposed bits", function()
    local q, one = lt.quantize_float8(lt.randn(16, 32), lt.tensor(9.0)), lt.tensor(1.0)
    local y = lt.scaled_mm(q:t(), q:t(), one, one)
    assert.same({ 32, 32 }, y.shape)
    local value = lt.dequantize_float8(q)
    assert.is_true(lt.allclose(value:t():matmul(value), y))
  end)

  it("names what does not fit", function()
    local q, one = lt.zeros(16, 32):to "u8", lt.tensor(1.0)
    assert.matches("scaled_mm: needs matrices %[M, K%] and %[N, K%], got %[16, 32%].- and "
      .. "%[32, 16%]", error_of(lt.scaled_mm, q, q:t(), one, one))
    assert.matches("scaled_mm: needs bits of quantize_float8 %(u8%), got %[16, 32%]",
      error_of(lt.scaled_mm, q:to "f32", q, one, one))
    assert.matches("scaled_mm: scale_b must be a number %[%] of f32, got %[1%]",
      error_of(lt.scaled_mm, q, q, one, lt.ones(1)))
    assert.matches("quantize_float8: needs floats and a scale, a number %[%] of f32",
      error_of(lt.quantize_float8, q, one))
    assert.matches("scaled_mm: the result is f32, f16 or bf16, got dtype = f64",
      error_of(lt.scaled_mm, q, q, one, one, { dtype = "f64" }))
  end)
end)
