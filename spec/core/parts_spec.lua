-- spec/core/parts_spec.lua: parts of tensors, and the arithmetic of their ranges.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local parts = require "ltrain.core.parts"

describe("a part", function()
  it("is a range of the elements of a whole tensor", function()
    local one = parts.new { shape = { 3, 4 }, from = 4, tensor = lt.ones(1, 4):to "f64" }
    assert.same({ { 3, 4 }, "f64", 4, 4, { 4 } },
      { one.shape, one.dtype, one.from, one.n, one.tensor.shape })
    assert.is_true(parts.is(one))
    assert.is_false(parts.is {})
    assert.same({ 0, 6 }, { parts.of(lt.ones(2, 3)).from, parts.of(lt.ones(2, 3)).n })
  end)

  it("must be within the whole", function()
    assert.matches("part: elements 10 to 13 are not in a tensor %[3, 4%] of 12", error_of(parts.new,
      { shape = { 3, 4 }, from = 10, tensor = lt.ones(4) }))
  end)

  it("is read of a tensor as a row, in its own memory", function()
    local x = lt.arange(12):reshape { 3, 4 }
    assert.same({ 5, 6, 7 }, parts.read(x, 5, 3):to "i64":tolist())
  end)
end)

describe("ranges", function()
  it("overlap", function()
    assert.same({ 3, 2 }, { parts.overlap(0, 5, 3, 9) })
    assert.equal(0, (select(2, parts.overlap(0, 5, 5, 9))))
    assert.equal(0, (select(2, parts.overlap(7, 2, 0, 3))))
    assert.same({ 4, 1 }, { parts.overlap(0, 9, 4, 1) })
  end)

  it("cover a tensor, or lack an element", function()
    local function missing(n, ...)
      local list = {}
      for i, range in ipairs { ... } do list[i] = { from = range[1], n = range[2] } end
      return parts.missing(list, n)
    end
    assert.is_nil(missing(6, { 4, 2 }, { 0, 4 }))
    assert.is_nil(missing(6, { 0, 5 }, { 2, 4 }))
    assert.is_nil(missing(0))
    assert.equal(0, missing(1))
    assert.equal(3, missing(6, { 0, 3 }, { 4, 2 }))
    assert.equal(5, missing(6, { 0, 5 }))
  end)

  it("of equal shares follow each other through all tensors, as even as 64 bytes allow", function()
    local sizes, total = { 1000, 4, 0, 77, 4096, 64 }, 0
    for _, size in ipairs(sizes) do total = total + (size + 63) // 64 * 64 end
    for ranks = 1, 7 do
      local at, sums = {}, {}
      for i in ipairs(sizes) do at[i] = 0 end
      for rank = 0, ranks - 1 do
        local of = parts.share(sizes, rank, ranks)
        sums[rank] = 0
        for i in ipairs(sizes) do
          local from, n = of(i)
          if n > 0 then
            assert.equal(at[i], from)
            assert.equal(0, from % 64)
            at[i], sums[rank] = from + n, sums[rank] + n
          end
        end
        assert.is_true(sums[rank] <= total / ranks + 64, ("%d of %d: %d"):format(rank, ranks,
          sums[rank]))
      end
      assert.same(sizes, at)
    end
  end)
end)

describe("states of several ranks", function()
  it("are merged: the first one's values count", function()
    assert.same({ a = 1, b = { c = 2, d = 3 }, e = { 4 } },
      parts.merge({ a = 1, b = { c = 2 } }, { a = 9, b = { c = 8, d = 3 }, e = { 4 } }))
  end)
end)
