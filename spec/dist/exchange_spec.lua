-- spec/dist/exchange_spec.lua: messages with tensors, all_to_all, reduce, results in `out`.
-- tags: slow
local support = require "spec.dist.support"

describe("messages", function()
  it("are tensors and tables with tensors, which arrive as they were sent", function()
    support.ranks(2, [[
      local strided = lt.arange(12, {dtype = "f32"}):view(3, 4):t():narrow(1, 2, 2)
      local sent = {
        lt.tensor(1.5), strided, {lt.zeros{0, 3}, name = "x", lt.zeros{0, 3}},
        deep = {lt.tensor({1, 2}, {dtype = "u8"}), big = lt.arange(300000)}, 7,
      }
      if rank == 0 then
        dist.send(sent, 1)
        dist.send(strided, 1)
        dist.send(lt.zeros{0}, 1)
      else
        local got = dist.recv(0)
        same(1.5, got[1]:item())
        same(strided:contiguous(), got[2])
        same({0, 3}, got[3][1].shape)
        same({0, 3}, got[3][2].shape)
        same("x", got[3].name)
        same(lt.tensor({1, 2}, {dtype = "u8"}), got.deep[1])
        same(lt.arange(300000), got.deep.big)
        same(7, got[4])
        same(strided:contiguous(), dist.recv(0))
        same({0}, dist.recv(0).shape)
      end
    ]])
  end)

  it("go into a tensor that waits: contiguous, strided, or part of another", function()
    support.ranks(2, [[
      local x = lt.arange(6, {dtype = "f32"}):view(2, 3)
      if rank == 0 then
        for _ = 1, 3 do dist.send(x, 1) end
      else
        local whole = lt.zeros{4, 3}
        same(true, rawequal(whole, dist.recv(whole:narrow(1, 1, 2), {from = 0}) and whole))
        same(x, whole:narrow(1, 1, 2))
        local turned = lt.zeros{3, 2}
        dist.recv(turned:t(), {from = 0})
        same(x:t():contiguous(), turned)
        local y = lt.zeros{2, 3}
        local before = y * 1
        same(true, rawequal(y, dist.recv(y, {from = 0})))
        same(x, y)
      end
    ]])
  end)

  it("that do not fit are refused when they are there, and the next one arrives", function()
    support.ranks(2, [[
      if rank == 0 then
        dist.send(lt.ones{3}, 1)
        dist.send({lt.ones{2}}, 1)
        dist.send(lt.ones{2}, 1)
      else
        local room = lt.zeros{2}
        same("recv: expected a tensor [2] f32, got a tensor [3] f32",
          error_of(dist.recv, room, {from = 0}):match("recv:.*"))
        same("recv: expected a tensor [2], got",
          error_of(dist.recv, room, {from = 0}):match("recv: .- got"))
        same(lt.zeros{2}, room)
        same(lt.ones{2}, dist.recv(room, {from = 0}))
      end
    ]])
  end)

  it("leave alone what the tape has saved, and are seen by it when they arrive", function()
    support.ranks(2, [[
      if rank == 0 then
        local w = lt.ones({2}, {requires_grad = true})
        local x = lt.tensor{2.0, 3.0}
        local loss = (w * x):sum()
        local handle = dist.send(x, 1, {async = true})
        handle:wait()
        loss:backward() -- x was read, not written
        same(lt.tensor{2.0, 3.0}, w.grad)
      else
        local w = lt.ones({2}, {requires_grad = true})
        local x = lt.zeros{2}
        local loss = (w * x):sum()
        dist.recv(x, {from = 0})
        same("written in place since by recv",
          error_of(function() loss:backward() end):match("written in place since by recv"))
      end
    ]])
  end)
end)

describe("all_to_all", function()
  it("hands part r to rank r, of every dtype", function()
    for n = 1, 3 do
      support.ranks(n, [[
        local n = dist.world_size()
        for _, row in ipairs(lt.dtypes()) do
          local x = (lt.arange(2 * n) + rank):remainder(2):to(row.name)
          local got = dist.all_to_all(x)
          same(row.name, got.dtype)
          for r = 0, n - 1 do
            local wanted = (lt.arange(2 * n) + r):remainder(2):narrow(1, 2 * rank + 1, 2)
            same(wanted:to(row.name), got:narrow(1, 2 * r + 1, 2))
          end
        end
      ]])
    end
  end)

  it("takes parts of any sizes, within groups too", function()
    support.ranks(3, [[
      local x = lt.arange(6):view(6, 1) + 10 * rank
      same(rank == 0 and lt.tensor{{10}, {20}, {21}}
        or rank == 1 and lt.tensor{{0}, {1}, {11}, {12}, {22}, {23}}
        or lt.tensor{{2}, {3}, {4}, {5}, {13}, {14}, {15}, {24}, {25}},
        dist.all_to_all(x, {splits = {rank, 2, 4 - rank}}))
      local nothing = dist.all_to_all(lt.zeros{0, 4}, {splits = {0, 0, 0}})
      same({0, 4}, nothing.shape)
      local group = dist.split(rank == 1 and -1 or 0)
      if group then
        local got = group:all_to_all(lt.tensor{0, 1} + 10 * rank)
        same(lt.tensor{0 + rank // 2, 20 + rank // 2}, got)
      end
    ]])
  end)

  it("says what is wrong with its parts", function()
    support.ranks(2, [[
      local function refused(wanted, ...)
        same(wanted, error_of(dist.all_to_all, ...):match("all_to_all:.*"))
      end
      refused("all_to_all: dim 1 must be a multiple of the 2 ranks: got [3]", lt.zeros{3})
      refused("all_to_all: splits must be 2 numbers, one for each rank, whose sum is the size of "
        .. "dim 1: got 2 of sum 4 for a tensor [3]", lt.zeros{3}, {splits = {2, 2}})
      refused("all_to_all: needs a tensor: got 1", 1)
    ]])
  end)
end)

describe("reduce", function()
  it("is all_reduce on one rank, nothing on the others", function()
    for n = 1, 4 do
      support.ranks(n, [[
        local n = dist.world_size()
        for root = 0, n - 1 do
          for _, op in ipairs{"sum", "mean", "min", "max", "prod"} do
            local x = lt.sin(lt.arange(1003, {dtype = "f64"}) + rank)
            local wanted = dist.all_reduce(x, {op = op})
            local got = dist.reduce(x, {to = root, op = op})
            if rank == root then same(wanted, got) else same(nil, got) end
          end
          same(rank == root and n * (n + 1) // 2 or nil, dist.reduce(rank + 1, {to = root}))
        end
      ]])
    end
  end)
end)

describe("a result in `out`", function()
  it("is the tensor that was given, whatever its memory", function()
    support.ranks(2, [[
      local x = lt.tensor{1.0, 2, 3, 4} * (rank + 1)
      local function into(out, name, ...)
        same(true, rawequal(out, dist[name](...)))
        return out
      end
      local y = lt.zeros{4}
      same(lt.tensor{3.0, 6, 9, 12}, into(y, "all_reduce", x, {out = y}))
      local column = lt.zeros{4, 2}
      local part = column:select(2, 1)
      same(lt.tensor{3.0, 6, 9, 12}, into(part, "all_reduce", x, {out = part}))
      same(lt.zeros{4}, column:select(2, 2))
      same(lt.tensor{2.0, 4, 6, 8}, into(y, "broadcast", x, {from = 1, out = y}))
      local all = lt.zeros{2, 4}
      same(lt.tensor{{1.0, 2, 3, 4}, {2.0, 4, 6, 8}}, into(all, "all_gather", x, {out = all}))
      local half = lt.zeros{2}
      same(rank == 0 and lt.tensor{3.0, 6} or lt.tensor{9.0, 12},
        into(half, "reduce_scatter", x, {out = half}))
      same(rank == 0 and lt.tensor{1.0, 2, 2, 4} or lt.tensor{3.0, 4, 6, 8},
        into(y, "all_to_all", x, {out = y}))
      same(rank == 0 and lt.tensor{2.0, 4} or lt.tensor{6.0, 8},
        into(half, "scatter", rank == 1 and x or nil, {from = 1, out = half}))
      local handle = dist.all_reduce(x, {out = y, async = true})
      same(true, rawequal(y, handle:wait()))
      same(lt.tensor{3.0, 6, 9, 12}, y)
    ]])
  end)

  it("may be memory that x is part of", function()
    support.ranks(2, [[
      local whole = lt.zeros{2, 3}
      whole[rank + 1]:fill_(rank + 1.0)
      dist.all_gather(whole[rank + 1], {out = whole})
      same(lt.tensor{{1.0, 1, 1}, {2, 2, 2}}, whole)
      local sums = lt.ones{4} * (rank + 1)
      dist.reduce_scatter(sums, {out = sums:narrow(1, 1, 2)})
      same(lt.tensor{3.0, 3, rank + 1, rank + 1}, sums)
    ]])
  end)

  it("is refused where it does not fit, or a gradient would be lost", function()
    support.ranks(2, [[
      local x = lt.ones{2}
      same("all_gather: out must be [2, 2] f32: got [2] f32",
        error_of(dist.all_gather, x, {out = lt.zeros{2}}):match("all_gather:.*"))
      same("all_reduce: out must be [2] f32: got [2] f64",
        error_of(dist.all_reduce, x, {out = lt.zeros({2}, {dtype = "f64"})}):match("all_reduce:.*"))
      same("all_reduce: a result in `out` has no gradient: write x:detach()",
        error_of(dist.all_reduce, lt.ones({2}, {requires_grad = true}), {out = x})
          :match("all_reduce:.*"))
      same("all_gather: out needs a tensor to all_gather: a value of Lua is returned",
        error_of(dist.all_gather, 1, {out = x}):match("all_gather:.*"))
    ]])
  end)
end)

describe("gradients", function()
  it("of all_to_all go back to where the parts came from", function()
    support.ranks(3, [[
      local w = lt.ones({6, 2}, {requires_grad = true})
      local got = dist.all_to_all(w * (rank + 1), {splits = {1, 2, 3}});
      (got * (10 * (rank + 1.0))):sum():backward()
      for row, to in ipairs{1, 2, 2, 3, 3, 3} do
        same(lt.tensor{1.0, 1} * (10 * to * (rank + 1)), w.grad[row])
      end
      local v = lt.ones({3}, {requires_grad = true});
      (dist.all_to_all(v) * (rank + 1.0)):sum():backward()
      same(lt.tensor{1.0, 2, 3}, v.grad)
    ]])
  end)

  it("of broadcast are summed on the rank that gave it", function()
    support.ranks(3, [[
      local b = lt.ones({2}, {requires_grad = true});
      (dist.broadcast(b * 2, {from = 1}) * (rank + 1.0)):sum():backward()
      same(rank == 1 and lt.tensor{12.0, 12} or lt.zeros{2}, b.grad)
    ]])
  end)
end)
