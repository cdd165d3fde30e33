-- spec/bind/pinned_spec.lua: pinned memory, and copies that do not block.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local tree = require "ltrain.core.tree"

local BESIDE <const> = { non_blocking = true }

describe("pin_memory", function()
  it("copies a tensor of the CPU into pinned memory, once", function()
    local held = lt.zeros({ 1 }, { device = "fake:0" }) -- a device that pins
    local x = lt.arange(6):reshape { 2, 3 }
    local p = x:t():pin_memory()
    assert.same({ { 0, 3 }, { 1, 4 }, { 2, 5 } }, p:tolist())
    assert.is_true(p:is_pinned())
    assert.is_false(x:is_pinned())
    assert.equal(p, p:pin_memory())
    assert.equal("cpu", p.device)
    assert.is_true(held.device == "fake:0")
    assert.same({ 0 }, lt.zeros({ 0, 3 }):pin_memory():sum { 2 }.shape)
  end)

  it("is not for what is on a device", function()
    local x = lt.zeros({ 2 }, { device = "fake:1" })
    assert.matches("pin_memory: only tensors of the cpu can be pinned, this one is on fake:1",
      error_of(x.pin_memory, x), 1, true)
  end)
end)

describe("non_blocking = true", function()
  it("of pinned memory reads it when the copy runs", function()
    local x = lt.ones(4):pin_memory()
    local y = x:to("fake:0", BESIDE)
    local z = y * 2
    x = nil -- luacheck: ignore
    collectgarbage()
    local other = lt.full({ 4 }, 5):pin_memory()
    assert.equal(2, z:max():item())
    assert.equal(5, other:max():item())
  end)

  it("is an option of each form of to, and changes no value", function()
    local x = lt.randn(3, 5)
    for _, y in ipairs { x:to("fake:0", BESIDE), x:to { device = "fake:0", non_blocking = true },
      x:pin_memory():to("fake:0", BESIDE), x:t():to("fake:0", BESIDE):t(),
      x:to("fake:1"):to("fake:0", BESIDE) } do
      assert.equal("fake:0", y.device)
      assert.is_true(y:to("cpu", BESIDE):eq(x):all():item())
    end
    assert.equal(x, x:to("cpu", BESIDE))
    assert.matches("to: unknown option 'blocking' (there are dtype, device, non_blocking)",
      error_of(x.to, x, "cpu", { blocking = true }), 1, true)
  end)
end)

-- Batches of what a loader makes, each on the fake device as soon as it is there.
local function sums(data, options)
  local list, pinned = {}, true
  for batch in lt.data.DataLoader(data, options):batches() do
    tree.each(batch, function(leaf)
      if not lt.is_tensor(leaf) then return end
      pinned = pinned and leaf:is_pinned()
      list[#list + 1] = leaf:to("fake:0", BESIDE):to("f64"):sum()
    end)
    batch = nil -- luacheck: ignore
    collectgarbage()
  end
  for i, sum in ipairs(list) do list[i] = sum:item() end
  return list, pinned
end

describe("DataLoader{pin_memory = true}", function()
  local held = lt.zeros({ 1 }, { device = "fake:0" })

  it("gathers into pinned memory, which waits for the copies out of it", function()
    local data = lt.data.TensorDataset(lt.randn(64, 7), lt.arange(64))
    local want = sums(data, { batch_size = 4 })
    local got, pinned = sums(data, { batch_size = 4, pin_memory = true })
    assert.is_true(pinned)
    assert.same(want, got)
    assert.equal(32, #got)
    assert.same(want, (sums(data, { batch_size = 4, pin_memory = true, prefetch = 0 })))
    assert.equal(1, held:numel())
  end)

  it("pins what collate makes, and objects by their own method", function()
    local data = {}
    for k = 1, 8 do data[k] = { x = lt.full({ 3 }, k), y = k, name = "a" } end
    local want = sums(data, { batch_size = 2 })
    local got, pinned = sums(data, { batch_size = 2, pin_memory = true })
    assert.is_true(pinned)
    assert.same(want, got)
    local Own = {}
    Own.__index = Own
    function Own.pin_memory() return "pinned" end
    local loader = lt.data.DataLoader({ 1, 2 }, { pin_memory = true,
      collate = function() return { setmetatable({}, Own) } end })
    for batch in loader:batches() do assert.equal("pinned", batch[1]) end
  end)
end)
