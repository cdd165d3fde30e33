-- spec/dist/reduce_spec.lua: gradients reduced at once are each reduced; numbers are added.
-- tags: slow
local job = require "spec.dist.job"
local support = require "spec.dist.support"

-- Sizes around and above the pieces in which data travels, one of nothing among them.
local BODY <const> = [[
  local c = require "ltrain.c"
  lt.seed(rank + 1)
  local function is_same(a, b) return a:numel() == 0 or (a:ne(b):to("i64"):sum():item() == 0) end
  for _, sizes in ipairs{{1}, {3, 0, 5}, {70000, 7, 1, 200000}, {65536, 65536}, {0}} do
    for _, dtype in ipairs{"f32", "f64", "bf16"} do
      local parameters, wanted = {}, {}
      for i, n in ipairs(sizes) do
        local grad = lt.randn(n):to(dtype)
        if rank == i - 1 then grad:zero_() end
        wanted[i] = lt.dist.all_reduce(grad) * 0.5
        parameters[i] = lt.parameter(lt.zeros(n):to(dtype))
        if rank ~= i - 1 then parameters[i].grad = grad end
      end
      local own = c.dist.missing(parameters)
      assert(own == (rank < #sizes and 1 or 0))
      c.dist.reduce(parameters, 0.5)
      for i, parameter in ipairs(parameters) do
        assert(is_same(wanted[i], parameter.grad), ("%s, part %d of %d"):format(dtype, i, #sizes))
      end
    end
  end
  c.dist.reduce({}, 1)
  local sums = c.dist.add { rank, 1, 0.5 }
  local ranks = lt.dist.world_size()
  assert(#sums == 3 and sums[1] == ranks * (ranks - 1) / 2 and sums[2] == ranks
    and sums[3] == ranks / 2)
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

  it("refuses gradients of several dtypes; views with gaps are copied", function()
    support.passes [[
      local c = require "ltrain.c"
      local x, y = lt.parameter(lt.zeros(4, 4)), lt.parameter(lt.zeros{2}:to("f64"))
      x.grad = lt.arange(16):to("f32"):view(4, 4):t()
      y.grad = lt.zeros{2}:to("f64")
      assert(error_of(c.dist.reduce, {x, y}, 1):find "dtypes differ: f32 and f64")
      local before = x.grad:clone()
      c.dist.reduce({x}, 1)
      assert(before:ne(x.grad):sum():item() == 0 and x.grad:is_contiguous())
    ]]
  end)
end)
