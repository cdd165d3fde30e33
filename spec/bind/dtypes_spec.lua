-- spec/bind/dtypes_spec.lua: what an element can be: names, casts, promotion.
local lt = require "ltrain"
local rows <const> = lt.dtypes()

describe("lt.dtypes", function()
  it("reports sizes and categories", function()
    local reported = {}
    for _, row in ipairs(rows) do reported[row.name] = { row.size, row.category } end
    assert.same({
      f32 = { 4, "floating" }, f64 = { 8, "floating" }, f16 = { 2, "floating" },
      bf16 = { 2, "floating" }, i64 = { 8, "integer" }, i32 = { 4, "integer" },
      u8 = { 1, "integer" }, bool = { 1, "boolean" }, i16 = { 2, "integer" },
      u16 = { 2, "integer" }, i8 = { 1, "integer" },
    }, reported)
  end)

  for _, row in ipairs(rows) do
    it("takes every name of " .. row.name, function()
      for _, name in ipairs{ row.name, row.torch_name, row.method } do
        assert.equal(row.name, lt.zeros({ 2 }, { dtype = name }).dtype)
        assert.equal(row.name, lt.zeros(2):to(name).dtype)
      end
      local x = lt.tensor{ 0, 1 }
      assert.equal(row.name, x[row.method](x).dtype)
      assert.equal(2 * row.size, #x:to(row.name):tobytes())
    end)
  end
end)

describe("promotion", function()
  -- Each with those above it: torch.promote_types; of u16 with other integers, which it refuses,
  -- numpy.promote_types.
  local WANTED <const> = {
    { "bool", "" },
    { "u8", "u8" },
    { "i8", "i8 i16" },
    { "i16", "i16 i16 i16" },
    { "i32", "i32 i32 i32 i32" },
    { "i64", "i64 i64 i64 i64 i64" },
    { "u16", "u16 u16 i32 i32 i32 i64" },
    { "f16", "f16 f16 f16 f16 f16 f16 f16" },
    { "bf16", "bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32" },
    { "f32", "f32 f32 f32 f32 f32 f32 f32 f32 f32" },
    { "f64", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64" },
  }

  it("is PyTorch's, and NumPy's where PyTorch has none", function()
    for i, pair in ipairs(WANTED) do
      local name, k = pair[1], 0
      for wanted in pair[2]:gmatch "%S+" do
        k = k + 1
        local other = WANTED[k][1]
        local a, b = lt.zeros({ 1 }, { dtype = name }), lt.zeros({ 1 }, { dtype = other })
        assert.equal(wanted, (a + b).dtype, name .. " + " .. other)
        assert.equal(wanted, (b + a).dtype, other .. " + " .. name)
      end
      assert.equal(i - 1, k)
    end
    assert.equal(#rows, #WANTED)
  end)
end)

describe("i8, i16 and u16", function()
  local function made(values, dtype) return lt.tensor(values, { dtype = dtype }) end

  it("hold what fits and wrap what does not", function()
    local values = { 32767, 32768, -32768, -1, 65535, 65536 }
    assert.same({ 32767, -32768, -32768, -1, -1, 0 }, made(values, "i16"):tolist())
    assert.same({ 32767, 32768, 32768, 65535, 65535, 0 }, made(values, "u16"):tolist())
    assert.same({ -1, 0, 0, -1, -1, 0 }, made(values, "i8"):tolist())
    assert.same({ -2, 2, 0 }, lt.tensor{ -2.9, 2.9, 0 / 0 }:to("i16"):tolist())
    assert.same({ -2, 2, 0 }, lt.tensor{ -2.9, 2.9, 0 / 0 }:to("i8"):tolist())
  end)

  it("become every dtype and come back", function()
    for _, row in ipairs(rows) do
      local wanted = row.name == "bool" and { 0, 1, 1 } or { 0, 1, 127 }
      for _, dtype in ipairs{ "i8", "i16", "u16" } do
        local x = made({ 0, 1, 127 }, dtype)
        assert.same(wanted, x:to(row.name):to(dtype):tolist())
        assert.same(wanted, lt.stack({ x, x }, 2):t()[1]:to(row.name):to(dtype):tolist())
      end
    end
    local x = made({ 65535, 2049, 2051 }, "u16")
    assert.same({ 65535.0, 2049.0, 2051.0 }, x:to("f32"):tolist())
    assert.same({ 1 / 0, 2048.0, 2052.0 }, x:to("f16"):tolist()) -- rounded once, to even
    assert.same({ 65536.0, 2048.0, 2048.0 }, x:to("bf16"):tolist())
  end)

  it("compute as integers do, and wrap", function()
    local x = made({ 32767, -32768, 7 }, "i16")
    assert.same({ -32768, -32767, 8 }, (x + 1):tolist())
    assert.same({ -32767, -32768, -7 }, (-x):tolist())
    assert.same({ 16383, -16384, 3 }, (x // 2):tolist())
    assert.same({ true, false, true }, x:gt(-5):tolist())
    local y = made({ 300, 0, 65535 }, "u16")
    assert.same({ 24464, 0, 1 }, (y * y):tolist())
    assert.same({ 299, 65535, 65534 }, (y - 1):tolist())
    assert.same({ true, false, true }, y:gt(32):tolist())
    assert.equal("f32", (y * 0.5).dtype)
    y:add_(1)
    assert.same({ 301, 1, 0 }, y:tolist())
    local z = made({ 127, -128, 7 }, "i8")
    assert.same({ -128, -127, 8 }, (z + 1):tolist())
    assert.same({ -127, -128, -7 }, (-z):tolist())
    assert.same({ 63, -64, 3 }, (z // 2):tolist())
    assert.same({ 1, 0, 49 }, (z * z):tolist())
    assert.same({ 382, 127, 262 }, (z + made({ 255, 255, 255 }, "u8")):tolist())
  end)

  it("are summed in i64, compared and sorted with their sign", function()
    local x, y = made({ -1, 32767, 32767 }, "i16"), made({ 65535, 1, 65535 }, "u16")
    assert.equal(65533, x:sum():item())
    assert.equal(131071, y:sum():item())
    assert.same({ "i64", "f32", "i16" }, { x:sum().dtype, x:mean().dtype, x:amax().dtype })
    assert.equal(-1, x:amin():item())
    assert.equal(65535, y:amax():item())
    assert.same({ 1, 65535, 65535 }, (y:sort()):tolist())
    assert.same({ 32767, 32767, -1 }, (x:sort{ descending = true }):tolist())
    assert.equal(0, y:argmax():item())
    local z = made({ 127, -128, -128 }, "i8")
    assert.same({ -129, -128 }, { z:sum():item(), z:amin():item() })
    assert.same({ -128, -128, 127 }, (z:sort()):tolist())
    assert.equal("i8", (z:sort()).dtype)
  end)

  it("choose elements, and are chosen and written", function()
    local x, at = made({ 10, 20, 30 }, "u16"), made({ 2, 0 }, "i16")
    assert.same({ 30, 10 }, x[at]:tolist())
    assert.same({ 30, 10 }, x:index_select(1, at):tolist())
    assert.same({ 20, 30 }, x[x:gt(10)]:tolist())
    x[2] = 65535
    x[{ { 3, 3 } }] = made({ 7 }, "i16")
    assert.same({ 10, 65535, 7 }, x:tolist())
    assert.same({ 17, 65535, 7 }, x:index_add(1, made({ 0 }, "u16"), made({ 7 }, "u16")):tolist())
    assert.same({ 20, 10 }, made({ 10, 20 }, "i8")[made({ 1, -2 }, "i8")]:tolist())
    assert.same({ 10, 65535, 7, 1 }, lt.cat({ x, made({ 1 }, "u8") }, 1):tolist())
  end)

  it("are made, printed and read from bytes", function()
    assert.same({ 5, 5 }, lt.full({ 2 }, 5, { dtype = "i16" }):tolist())
    assert.same({ 0, 1, 2 }, lt.arange(3, { dtype = "u16" }):tolist())
    assert.equal("tensor([ 1, -2], dtype=int16)", tostring(made({ 1, -2 }, "i16")))
    assert.equal("tensor([65535], dtype=uint16)", tostring(made({ 65535 }, "u16")))
    assert.same({ 258, -2 }, lt.from_bytes("\2\1\254\255", "i16"):tolist())
    assert.equal("tensor([ 1, -2], dtype=int8)", tostring(made({ 1, -2 }, "i8")))
    assert.same({ 1, -2 }, lt.from_bytes("\1\254", "i8"):tolist())
    assert.same({ 258, 65534 }, lt.from_bytes("\2\1\254\255", "u16"):tolist())
    local drawn = lt.randint(-3, 4, { 100 }, { dtype = "i16" })
    assert.equal("i16", drawn.dtype)
    assert.is_true(drawn:amin():item() >= -3 and drawn:amax():item() <= 3)
  end)

  it("are saved and loaded as I8, I16 and U16", function()
    local path = os.tmpname()
    lt.save(path, { a = made({ -1, 2 }, "i16"), b = made({ 65535 }, "u16"),
      c = made({ -128, 127 }, "i8") })
    local file <close> = assert(io.open(path, "rb"))
    local text = file:read("a")
    assert.matches('"dtype":"I16","shape":[2]', text, 1, true)
    assert.matches('"dtype":"U16","shape":[1]', text, 1, true)
    assert.matches('"dtype":"I8","shape":[2]', text, 1, true)
    local back = lt.load(path)
    os.remove(path)
    assert.same({ "i16", "u16", "i8" }, { back.a.dtype, back.b.dtype, back.c.dtype })
    assert.same({ { -1, 2 }, { 65535 }, { -128, 127 } },
      { back.a:tolist(), back.b:tolist(), back.c:tolist() })
  end)
end)
