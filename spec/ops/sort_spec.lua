-- spec/ops/sort_spec.lua: order of long lines, which are sorted by digits, against short ones.
-- tags: slow
local lt = require "ltrain"

local inf <const>, nan <const> = math.huge, 0 / 0

-- The order by Lua's own comparisons: NaN largest, equal ones as they stood.
local function order_of(list, descending)
  local at = {}
  for i = 1, #list do at[i] = i end
  table.sort(at, function(i, j)
    local a, b = list[i], list[j]
    if a ~= a or b ~= b then
      if a ~= a and b ~= b then return i < j end
      return (a ~= a) == descending
    elseif a == b then
      return i < j
    end
    if descending then return a > b end
    return a < b
  end)
  return at
end

local function check(x)
  local list = x:tolist()
  for _, descending in ipairs{false, true} do
    local values, places = x:sort(1, descending)
    local at, v, p = order_of(list, descending), values:tolist(), places:tolist()
    for i = 1, #list do
      assert.equal(at[i] - 1, p[i])
      local wanted = list[at[i]]
      local same = v[i] == wanted and 1 / v[i] == 1 / wanted or v[i] ~= v[i] and wanted ~= wanted
      assert.is_true(same)
    end
  end
end

describe("sort of a long line", function()
  lt.seed(3)
  for _, dtype in ipairs{"f32", "f64", "bf16"} do
    it("is stable, with NaN as the largest: " .. dtype, function()
      local x = lt.cat{lt.randn(300), (lt.randn(300) * 2):round(),
        lt.tensor{nan, inf, -inf, 0.0, -0.0, nan, -0.0, 0.0}}
      check(x:index_select(1, lt.randperm(608)):to(dtype))
    end)
  end

  it("orders integers of any range", function()
    check(lt.randint(-5, 5, {500}))
    check(lt.randint(math.mininteger, math.maxinteger, {500}))
    check(lt.tensor(lt.randint(0, 200, {500}), {dtype = "u8"}))
    local ends = lt.cat{lt.tensor{math.maxinteger, math.mininteger, 0}, lt.randint(0, 9, {300})}
    check(ends)
    check(lt.full({300}, 7))
  end)

  it("is the same along any dim and for rows", function()
    local x = lt.randn(20, 400)
    local v, i = x:sort(2)
    local w, j = x:t():sort(1)
    assert.is_true(v:eq(w:t()):all():item() and i:eq(j:t()):all():item())
    for row = 1, 20, 7 do
      local _, k = x[row]:sort(1)
      assert.is_true(k:eq(i[row]):all():item())
    end
  end)

  it("in several chunks is sorted, and a permutation", function()
    local x = lt.randn(200000)
    local v, i = x:sort(1)
    assert.is_true(v:narrow(1, 1, 199999):le(v:narrow(1, 2, 199999)):all():item())
    assert.is_true(x:gather(1, i):eq(v):all():item())
    local back = lt.zeros({200000}, {dtype = "i64"}):scatter_add(1, i, lt.ones_like(i))
    assert.is_true(back:eq(1):all():item())
  end)
end)

describe("randperm", function()
  it("draws the same order for a seed as ever", function()
    lt.seed(7)
    local sums = {}
    for k, n in ipairs{1, 2, 65, 1000} do sums[k] = (lt.randperm(n) * lt.arange(n)):sum():item() end
    -- Fisher and Yates from the end, 64 bits of Philox a draw: an order that resumed runs rely on.
    assert.same({0, 1, 68352, 247845277}, sums)
  end)
end)
