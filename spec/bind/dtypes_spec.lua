-- spec/bind/dtypes_spec.lua: what an element can be: names, casts, promotion.
local lt = require "ltrain"
local rows <const> = lt.dtypes()

describe("lt.dtypes", function()
  it("tells sizes and categories", function()
    local told = {}
    for _, row in ipairs(rows) do told[row.name] = { row.size, row.category } end
    assert.same({
      f32 = { 4, "floating" }, f64 = { 8, "floating" }, f16 = { 2, "floating" },
      bf16 = { 2, "floating" }, i64 = { 8, "integer" }, i32 = { 4, "integer" },
      u8 = { 1, "integer" }, bool = { 1, "boolean" },
    }, told)
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
  -- torch.promote_types, the lower triangle.
  local ORDER <const> = { "bool", "u8", "i32", "i64", "f16", "bf16", "f32", "f64" }
  local WANTED <const> = {
    u8 = "u8", i32 = "i32 i32", i64 = "i64 i64 i64", f16 = "f16 f16 f16 f16",
    bf16 = "bf16 bf16 bf16 bf16 f32", f32 = "f32 f32 f32 f32 f32 f32",
    f64 = "f64 f64 f64 f64 f64 f64 f64",
  }

  it("is PyTorch's", function()
    for i, name in ipairs(ORDER) do
      local k = 0
      for wanted in (WANTED[name] or ""):gmatch "%S+" do
        k = k + 1
        local a, b = lt.zeros({ 1 }, { dtype = name }), lt.zeros({ 1 }, { dtype = ORDER[k] })
        assert.equal(wanted, (a + b).dtype, name .. " + " .. ORDER[k])
        assert.equal(wanted, (b + a).dtype, ORDER[k] .. " + " .. name)
      end
      assert.equal(i - 1, k)
    end
    assert.equal(#rows, #ORDER)
  end)
end)
