-- spec/cuda/nccl_spec.lua: NCCL between GPUs, by a fake one (fake_nccl.cpp): what it moves.
-- tags: half, slow
local every_collective = require "spec.dist.every_collective"
local shell = require "spec.build.shell"
local support = require "spec.dist.support"

local BUILD <const> = os.getenv "LT_BUILD" or "build"

describe("ltrain_nccl.so", function()
  it("does what ltrain asks of a link between devices", function()
    for _, n in ipairs { 1, 2, 3 } do
      shell.need([[(
        export TMPDIR=$(mktemp -d); p=; bad=0
        for r in $(seq 0 %d); do
          FAKERT_PAUSE=20 timeout -k 1 240 %s/spec/c/comm_conformance nccl - $r %d $TMPDIR &
          p="$p $!"
        done
        for q in $p; do wait $q || bad=1; done
        rm -rf $TMPDIR; exit $bad)]], n - 1, BUILD, n)
    end
  end)
end)

describe("collectives between GPUs", function()
  it("give what they give on the CPU, in groups too", function()
    for _, n in ipairs { 2, 3 } do
      local out = support.ranks(n, 'local device = "cuda:" .. rank\n' .. every_collective)
      assert.not_matches("no comm backend transfers", out)
    end
  end)
end)

describe("a sum between GPUs", function()
  -- (x0 + x1) + (x2 + x3) and ((x3 + x2) + x1) + x0 are of other bits.
  local SUMS <const> = [[
    local parts = {}
    for r = 0, 3 do
      lt.seed(7 + r)
      parts[r] = lt.randn(1000)
    end
    local mine = parts[rank]:to("cuda:" .. rank)
    local tree = (parts[0] + parts[1]) + (parts[2] + parts[3])
    local plain = ((parts[3] + parts[2]) + parts[1]) + parts[0]
    if tree:eq(plain):all():item() then error "the orders are the same" end
  ]]

  it("is NCCL's where nothing asks for an order", function()
    support.ranks(4, SUMS .. [[
      same(plain, dist.all_reduce(mine):to "cpu")
      same(plain:narrow(1, 250 * rank + 1, 250), dist.reduce_scatter(mine):to "cpu")
    ]])
  end)

  it("is the tree's with deterministic = true: the same bits as over the host", function()
    support.ranks(4, SUMS .. [[
      require "ltrain.c".dist.set_fixed_order(true)
      same(tree, dist.all_reduce(mine):to "cpu")
      same(tree:narrow(1, 250 * rank + 1, 250), dist.reduce_scatter(mine):to "cpu")
    ]])
  end)

  it("has no nan passed over in minima and maxima, and bools are 'or' and 'and'", function()
    support.ranks(2, [[
      local device = "cuda:" .. rank
      local x = lt.tensor {rank == 0 and 0 / 0 or 1, 2.0 + rank}
      for _, op in ipairs {"min", "max"} do
        same(dist.all_reduce(x, {op = op}), dist.all_reduce(x:to(device), {op = op}):to "cpu")
      end
      local b = lt.tensor {rank == 1, true, false}
      for _, op in ipairs {"min", "max"} do
        same(dist.all_reduce(b, {op = op}), dist.all_reduce(b:to(device), {op = op}):to "cpu")
      end
    ]])
  end)
end)

describe("a rank that ends", function()
  it("has done its part of what others still need", function()
    support.ranks(2, [[
      local x = lt.ones(4, {device = "cuda:" .. rank})
      for _ = 1, 20 do x = dist.all_reduce(x):mul(0.5) end -- nobody reads it
    ]])
  end)
end)

describe("groups of GPUs", function()
  it("issue in one order on all ranks, whichever agree first", function()
    support.ranks(3, [[
      local x = lt.full({4}, 1.0, {device = "cuda:" .. rank})
      local pair = dist.split(rank < 2 and 0 or 1)
      for _ = 1, 5 do
        local all = dist.all_reduce(x, {async = true})
        local two = dist.all_reduce(x, {group = pair, async = true})
        local again = dist.all_reduce(x, {async = true})
        same(lt.full({4}, rank < 2 and 2.0 or 1.0), two:wait():to "cpu")
        same(lt.full({4}, 3.0), again:wait():to "cpu")
        same(lt.full({4}, 3.0), all:wait():to "cpu")
      end
    ]])
  end)

  it("end while others still use theirs", function()
    support.ranks(2, [[
      local x = lt.ones(4, {device = "cuda:" .. rank})
      for _ = 1, 3 do
        local group = dist.split(0)
        local sum = dist.all_reduce(x, {group = group})
        group = nil
        collectgarbage()
        collectgarbage()
        same(lt.full({4}, 2.0), sum:to "cpu")
      end
    ]])
  end)
end)
