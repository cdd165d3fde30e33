-- spec/cuda/float8_spec.lua: float8 on GPUs: the CPU's bits, and products by cuBLASLt from compute
-- capability 8.9 on, whose fake demands what the manual does.
local both = require "spec.cuda.both"
local child = require "spec.cli.child"
local counts = require "spec.cuda.counts"
local lt = require "ltrain"

local FORMATS <const> = { "e4m3", "e5m2" }

describe("float8 on cuda", function()
  both.it("has the CPU's bits and values", function()
    for _, format in ipairs(FORMATS) do
      for _, dtype in ipairs { "f32", "bf16", "f16" } do
        both.same_on_both(format, function(device)
          local x = (lt.randn(33, 65) * 100):to(dtype):to(device)
          local odd = lt.tensor({ 0 / 0, 1 / 0, -1 / 0, -0.0, 1e-9, 3e38 }):to(dtype):to(device)
          local scale = lt.tensor(3.7):to(device)
          local q = lt.quantize_float8(x:t(), scale, { format = format })
          return { q, lt.quantize_float8(odd, scale, { format = format }),
            lt.dequantize_float8(q:narrow(1, 3, 7), { format = format }) }
        end)
      end
    end
  end)

  -- Small integers: exact in both formats, and so are their sums.
  local function products(device, m, k, n)
    local a = lt.randint(-4, 5, { m, k }):to("f32"):to(device)
    local b = lt.randint(-4, 5, { n, k }):to("f32"):to(device)
    local one, half = lt.tensor(1.0):to(device), lt.tensor(0.5):to(device)
    local list = {}
    for _, format_a in ipairs(FORMATS) do
      for _, format_b in ipairs(FORMATS) do
        for _, dtype in ipairs { "f32", "bf16", "f16" } do
          list[#list + 1] = lt.scaled_mm(lt.quantize_float8(a, one, { format = format_a }),
            lt.quantize_float8(b, one, { format = format_b }), half, half,
            { format_a = format_a, format_b = format_b, dtype = dtype })
        end
      end
    end
    local q = lt.quantize_float8(a, one)
    list[#list + 1] = lt.scaled_mm(q:t(), q:t(), half, one)
    return list
  end

  both.it("has the CPU's products of any sizes", function()
    for _, size in ipairs { { 16, 32, 48 }, { 7, 16, 32 }, { 1, 1, 1 }, { 33, 17, 5 },
      { 0, 16, 16 }, { 16, 64, 16 } } do
      both.same_on_both(table.concat(size, " "), function(device)
        return products(device, table.unpack(size))
      end)
    end
  end)

  both.it("gives them to cuBLASLt, in one call, where 16 divides the dims", function()
    local one <const> = lt.tensor(1.0):to "cuda"
    if not counts then return end -- only the fake runtime counts
    local function launches(m, k, n)
      local a = lt.quantize_float8(lt.ones({ m, k }, { device = "cuda" }), one)
      local b = lt.quantize_float8(lt.ones({ n, k }, { device = "cuda" }), one)
      counts()
      lt.scaled_mm(a, b, one, one)
      return counts().launches
    end
    assert.equal(1, launches(32, 16, 48))
    assert.equal(5, launches(31, 16, 48)) -- the factors, the scale, the product, scaled
  end)

  both.it("has the CPU's products on GPUs without float8", function()
    local script <const> = [[
      local lt = require "ltrain"
      local one = lt.tensor(1.0):to "cuda"
      local q = lt.quantize_float8(lt.arange(512):to("f32"):reshape(16, 32):to "cuda", one)
      local y = lt.scaled_mm(q, q, one, one):to "cpu"
      local v = lt.dequantize_float8(q:to "cpu")
      print(lt.allclose(y, v:matmul(v:t()), {rtol = 1e-5}))
    ]]
    for _, capability in ipairs { "75", "80", "86", "89", "120" } do
      local _, out, err = child.run({ "-e", script }, { env = { FAKERT_CAPABILITY = capability,
        LTRAIN_BACKENDS = os.getenv "LTRAIN_BACKENDS" } })
      assert.equal("true\n", out, capability .. ": " .. err)
    end
  end)
end)
