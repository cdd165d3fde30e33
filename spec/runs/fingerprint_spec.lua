-- spec/runs/fingerprint_spec.lua: the hash of what a data set holds.
local fingerprint = require "ltrain.runs.fingerprint"
local lt = require "ltrain"

local data <const> = lt.data

local function of(dataset, options) return fingerprint(data.DataLoader(dataset, options or {})) end

describe("the hash of data", function()
  it("is the same for the same data, whatever the loader does with it", function()
    local x = lt.arange(40):view(20, 2)
    local hash = of(data.TensorDataset(x))
    assert.matches("^%x+$", hash)
    assert.equal(hash, of(data.TensorDataset(x:clone()), { batch_size = 4, shuffle = true }))
    assert.equal(64, #hash)
  end)

  it("differs with values, dtypes, shapes, parts and their order", function()
    local x = lt.arange(40):view(20, 2)
    local changed = x:clone()
    changed[{ 20, 2 }] = 0
    local seen = {}
    for i, set in ipairs { data.TensorDataset(x), data.TensorDataset(changed),
      data.TensorDataset(x:to "f32"), data.TensorDataset(x:view(10, 4)),
      data.TensorDataset(x, x), data.Subset(data.TensorDataset(x), { 1, 2, 3 }),
      data.Subset(data.TensorDataset(x), { 1, 3, 2 }),
      data.ConcatDataset { data.TensorDataset(x), data.TensorDataset(changed) },
      { 1, 2, 3 }, { 1, 2, 4 }, { "a", "b" } } do
      local hash = of(set)
      assert.is_nil(seen[hash], i)
      seen[hash] = true
    end
  end)

  it("is of a part of large tensors and lists, the first and the last in it", function()
    local x = lt.zeros(200000, 8)
    local hash = of(data.TensorDataset(x))
    for _, row in ipairs { 1, 200000 } do
      local other = x:clone()
      other[{ row, 1 }] = 1
      assert.not_equal(hash, of(data.TensorDataset(other)))
    end
    local list = {}
    for i = 1, 50000 do list[i] = i end
    hash = of(list)
    list[50000] = 0
    assert.not_equal(hash, of(list))
  end)

  it("is none of what cannot be looked into, and draws no random numbers", function()
    lt.seed(4)
    assert.is_nil(fingerprint(function() end))
    assert.is_nil(fingerprint(nil))
    local drawn = 0
    local Made = data.Dataset:extend("Made")
    function Made:get(_)
      drawn = drawn + 1
      return lt.randn(2)
    end
    function Made:__len() return 4 end -- luacheck: ignore
    fingerprint(data.DataLoader(Made(), {}))
    assert.equal(0, drawn)
    local after = lt.rand(1):item()
    lt.seed(4)
    assert.equal(lt.rand(1):item(), after)
  end)
end)
