-- spec/dist/joined_spec.lua: lt.dist in ranks that mpirun started.
local support = require "spec.dist.support"

local mpirun = support.mpirun
local why <const> = require "ltrain.clusters.mpirun".missing()

local function test(name, fn)
  if why then pending(name .. " (" .. why .. ")") else it(name, fn) end
end

describe("ranks of mpirun", function()
  test("run what is launched, and all have rank 0's results", function()
    local status, output = mpirun(2, [[
      local a, b, c = lt.dist.launch(2, function(rank)
        local w = lt.tensor({1.0 + rank}, {requires_grad = true})
        lt.dist.all_gather(w * 2, {cat = true}):pow(2):sum():backward()
        return rank, lt.dist.all_reduce(rank + 1), lt.dist.all_gather(w.grad:item())
      end)
      print(("%d %d %g %g"):format(a, b, c[1], c[2]))
    ]])
    assert.equal(0, status, output)
    assert.equal("0 3 16 32\n0 3 16 32\n", output)
  end)

  test("say when a launch asks for another number", function()
    local status, output = mpirun(2, [[ lt.dist.launch(3, print) ]], "run")
    assert.equal(1, status, output)
    assert.matches("rank %d: script.lua:1: dist.launch: asked for 3 ranks in a world of 2", output)
  end)

  test("tell an error once, and end", function()
    for _, word in ipairs{ "", "run" } do
      local status, output = mpirun(2, [[
        if lt.dist.rank() == 1 then error "boom" end
        lt.dist.barrier()
      ]], word)
      assert.equal(1, status, output)
      assert.equal("ltrain: rank 1: script.lua:1: boom\n", output)
    end
  end)
end)
