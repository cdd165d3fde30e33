-- spec/bind/hash_spec.lua: the quick hash by which ranks compare what they hold; of tensors on a
-- device it is computed there.
local c = require "ltrain.c"
local lt = require "ltrain"

local hash <const> = c.runtime.hash

for _, device in ipairs { "cpu", "fake" } do
  describe("the hash of tensors on " .. device, function()
    local function on(values, dtype)
      return lt.tensor(values, { dtype = dtype }):to(device)
    end
    local function differ(a, b)
      assert.not_equal(hash(a), hash(b))
      assert.equal(hash(a), hash(a))
    end

    it("is that of other tensors with the same bits", function()
      for _, dtype in ipairs(lt.dtypes()) do
        local x = lt.tensor({ 0, 1, 1 }, { dtype = dtype.name }):to(device)
        assert.equal(hash { x, 3, "a" }, hash { x:clone(), 3, "a" })
        differ({ x }, { on({ 1, 1, 0 }, dtype.name) })
        differ({ x }, { on({ 0, 1, 0 }, dtype.name) })
      end
    end)

    it("knows order, shapes, dtypes and plain values", function()
      local x, y = on({ 1, 2 }, "i32"), on({ 3, 4 }, "i32")
      differ({ x, y }, { y, x })
      differ({ x }, { x:reshape { 2, 1 } })
      differ({ x }, { x:to "u16" })
      differ({ x, 1 }, { x, 2 })
      differ({ x }, { x, x:narrow(1, 1, 0) })
      differ({ x:reshape { 1, 2 }:expand(2, 2) }, { lt.cat({ y, x }, 1):reshape { 2, 2 } })
    end)

    it("sees a bit that numbers do not show", function()
      differ({ on({ 0.0 }, "f32") }, { on({ -0.0 }, "f32") })
      differ({ on({ 0.0 }, "f16") }, { on({ -0.0 }, "f16") })
      local nan = on({ 0 / 0 }, "f64")
      assert.equal(hash { nan }, hash { nan:clone() })
    end)

    it("sees one element of many, wherever it is, and two that are exchanged", function()
      local n = 65536 * 3 + 5
      local x = lt.zeros(n, { dtype = "f32" }):to(device)
      local seen = { [hash { x }] = true }
      for _, at in ipairs { 1, 2, 65536, 65537, 2 * 65536 + 1, 3 * 65536 + 1, n } do
        local y = x:clone()
        y[at] = 1e-45
        local own = hash { y }
        assert.is_nil(seen[own])
        seen[own] = true
      end
    end)

    it("is not moved by small changes that add up to nothing", function()
      local x, seen = lt.ones(4, { dtype = "i64" }):to(device), {}
      for _, change in ipairs { { 0, 0, 0, 0 }, { 1, -1, 0, 0 }, { 1, -2, 1, 0 }, { 1, -3, 3, -1 },
        { 3, -1, 0, 0 }, { -1, 3, -3, 1 } } do
        local own = hash { x + on(change, "i64") }
        assert.is_nil(seen[own])
        seen[own] = true
      end
    end)

    it("takes tensors that are not contiguous", function()
      local x = lt.arange(24):reshape { 4, 6 }:to(device)
      assert.equal(hash { x:t():contiguous() }, hash { x:t() })
      local part = x(lt.all, { 2, 5, 2 })
      assert.equal(hash { part:contiguous() }, hash { part })
    end)
  end)
end

describe("the hash of tensors on a device", function()
  local function counted(fn)
    local before, grown = c.runtime.fake_counts(), {}
    fn()
    for name, n in pairs(c.runtime.fake_counts()) do grown[name] = n - before[name] end
    return grown
  end

  it("brings a few numbers to the host: one wait, however many tensors", function()
    local list = {}
    for k = 1, 20 do list[k] = lt.full({ k, 70 }, k, { device = "fake" }) end
    local n = counted(function() hash(list) end)
    assert.equal(1, n.waits)
    assert.equal(2, n.copies) -- the factors in, the sums out
  end)

  it("takes tensors of several devices and of the host", function()
    local function list(last)
      return { lt.ones(3, { device = "fake" }), lt.ones(3, { device = "fake:1" }), lt.ones(3),
        lt.full({ 3 }, last, { device = "fake" }) }
    end
    assert.equal(hash(list(1)), hash(list(1)))
    assert.not_equal(hash(list(1)), hash(list(2)))
    assert.equal(hash {}, hash {})
  end)

  it("keeps nothing", function()
    local x = lt.ones(70000, { device = "fake" })
    local function held()
      hash { x }
      collectgarbage()
      return c.runtime.memory("fake").live_bytes
    end
    local before = held()
    for _ = 1, 5 do hash { x, x } end
    assert.equal(before, held())
  end)

  it("records nothing and changes nothing", function()
    local w = lt.parameter(lt.ones(3, { device = "fake" }))
    hash { w }
    assert.is_true(w.requires_grad)
    assert.is_nil(w.grad)
    assert.equal(3, w:sum():item())
  end)
end)
