-- spec/dist/reduce_spec.lua: many tensors reduced at once are each reduced.
local job = require "spec.dist.job"
local support = require "spec.dist.support"

-- Sizes around and above the pieces in which data travels, one of nothing among them.
local BODY <const> = [[
  local c = require "ltrain.c"
  lt.seed(rank + 1)
  local function is_same(a, b) return a:numel() == 0 or (a:ne(b):to("i64"):sum():item() == 0) end
  for _, sizes in ipairs{{1}, {3, 0, 5}, {70000, 7, 1, 200000}, {65536, 65536}, {0}} do
    for _, dtype in ipairs{"f32", "f64", "bf16"} do
      local parts, wanted = {}, {}
      for i, n in ipairs(sizes) do
        parts[i] = lt.randn(n):to(dtype)
        wanted[i] = lt.dist.all_reduce(parts[i]) * 0.5
      end
      c.dist.reduce(parts, 0.5)
      for i, part in ipairs(parts) do
        assert(is_same(wanted[i], part), ("%s, part %d of %d"):format(dtype, i, #sizes))
      end
    end
  end
  c.dist.reduce({}, 1)
]]

describe("dist.reduce", function()
  for _, n in ipairs { 1, 2, 3, 5 } do
    it(("gives the sums of %d ranks, scaled"):format(n), function() support.ranks(n, BODY) end)
  end

  it("gives them over mpi", function()
    local can, why = job.can "mpi"
    if not can then pending(why) return end
    local status, out = support.mpirun(3, "local rank = dist.rank() " .. BODY)
    assert.equal(0, status, out)
  end)

  it("refuses tensors of several dtypes, and views with gaps", function()
    support.passes [[
      local c = require "ltrain.c"
      local x = lt.zeros(4, 4)
      local y = lt.zeros{2}:to("f64")
      assert(error_of(c.dist.reduce, {x, y}, 1):find "dtypes differ: f32 and f64")
      assert(error_of(c.dist.reduce, {x:t()}, 1):find "not contiguous")
    ]]
  end)
end)
