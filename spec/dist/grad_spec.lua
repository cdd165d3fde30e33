-- spec/dist/grad_spec.lua: gradients through collectives: what n ranks get on their parts of a
-- batch is what one process gets on the whole.
local support = require "spec.dist.support"

-- Rank r of n has rows r * 2 + 1 .. r * 2 + 2 of X [2 n, 3]; W is everybody's.
local SETUP <const> = [[
  local n = dist.world_size()
  local function numbers(rows, columns, by)
    return lt.sin(lt.arange(rows * columns, {dtype = "f64"}) * by):view(rows, columns)
  end
  local X, W = numbers(2 * n, 3, 0.7), numbers(3, 4, 1.3)
  local part = X:narrow(1, 2 * rank + 1, 2)
  local function leaf(x) return lt.tensor(x, {requires_grad = true}) end
  local function close(wanted, got)
    same(wanted.shape, got.shape)
    if wanted.shape[1] == 0 then return end
    local worst = (wanted - got):abs():max():item()
    if not (worst <= 1e-12) then error("differ by " .. worst, 2) end
  end
]]

local function ranks(n, body) return support.ranks(n, SETUP .. body) end

describe("gradients through all_gather", function()
  it("are those of the joined batch, summed over what ranks make of it", function()
    for n = 2, 3 do
      ranks(n, [[
        -- Each rank's loss looks at all rows, with a weight of its own.
        local w = leaf(W)
        local gathered = dist.all_gather(part:matmul(w))
        same({n, 2, 4}, gathered.shape)
        local loss = ((gathered:view(2 * n, 4)) ^ 3 * (rank + 1)):sum()
        loss:backward()
        local total = dist.all_reduce(w.grad)
        local whole = leaf(W)
        local weight = n * (n + 1) / 2
        ((X:matmul(whole)) ^ 3 * weight):sum():backward()
        close(whole.grad, total)
      ]])
    end
  end)

  it("are exact for parts of unequal size, empty ones too", function()
    ranks(3, [[
      local rows = {3, 0, 2}
      local starts = {1, 4, 4}
      local full = numbers(5, 3, 0.7)
      local mine = leaf(full:narrow(1, starts[rank + 1], rows[rank + 1]))
      local joined = dist.all_gather(mine * 2, {cat = true})
      same({5, 3}, joined.shape)
      local loss = (joined ^ 2 * (rank + 1)):sum()
      loss:backward()
      -- d/dx of 6 * (2 x)^2
      close(full:narrow(1, starts[rank + 1], rows[rank + 1]) * 48, mine.grad)
    ]])
  end)

  it("pass through scalars, and through handles", function()
    ranks(2, [[
      local x = leaf(lt.tensor(rank + 1.0))
      local handle = dist.all_gather(x * 3, {async = true})
      local y = handle:wait()
      same({2}, y.shape);
      (y ^ 2):sum():backward()
      -- two ranks' losses, each (3 x)^2
      same(2.0 * 18 * (rank + 1), x.grad:item())
    ]])
  end)
end)

describe("gradients through all_reduce", function()
  it("of a sum and of a mean are sum and mean of the gradients", function()
    ranks(3, [[
      for _, op in ipairs{"sum", "mean"} do
        local w = leaf(W)
        local y = dist.all_reduce(part:matmul(w), {op = op}) -- [2, 4]
        local loss = (y ^ 2 * (rank + 1)):sum()
        loss:backward()
        local whole = leaf(W)
        local scale = op == "sum" and 1 or 1 / n
        local sum = X:view(n, 2, 3):sum(1):matmul(whole) * scale;
        (sum ^ 2 * (n * (n + 1) / 2)):sum():backward()
        close(whole.grad, dist.all_reduce(w.grad))
      end
    ]])
  end)

  it("go through what is reduced in place", function()
    ranks(2, [[
      local w = leaf(W)
      local y = w * (rank + 1)
      dist.all_reduce_(y)
      close(W * 3, y:detach())
      y:sum():backward()
      close(lt.full({3, 4}, 2.0 * (rank + 1), {dtype = "f64"}), w.grad)
    ]])
  end)

  it("stop with sync_grads = false, under no_grad, and for what has none", function()
    ranks(2, [[
      local w = leaf(W)
      same(false, dist.all_reduce(w, {sync_grads = false}).requires_grad)
      same(false, dist.all_gather(w, {sync_grads = false}).requires_grad)
      same(false, lt.no_grad(function() return dist.all_reduce(w).requires_grad end))
      same(false, dist.all_reduce(W).requires_grad)
      lt.no_grad(function()
        same(false, dist.broadcast(w).requires_grad)
        same(false, (dist.gather(w) or W).requires_grad)
        same(false, dist.scatter(lt.cat{w, w}).requires_grad)
      end)
    ]])
  end)
end)

describe("a tensor that requires grad", function()
  it("is refused by what has no gradient, with what to write", function()
    support.ranks(2, [[
      local w = lt.ones({2}, {requires_grad = true})
      local function refused(name, fn, ...)
        local text = error_of(fn, ...)
        if not text:find(name .. ": has no gradient, and a tensor [2] requires one: write "
          .. "x:detach(), or use all_reduce", 1, true) then error(text) end
      end
      refused("reduce", dist.reduce, w)
      refused("gather", dist.gather, w)
      if rank == 0 then refused("scatter", dist.scatter, w) end
      if rank == 0 then refused("scatter", dist.scatter, {w, w}) end
      refused("send", dist.send, w, 1 - rank)
      same(lt.ones(2), dist.broadcast(w:detach()))
    ]])
  end)
end)

describe("gradients through reduce_scatter", function()
  it("come from all ranks", function()
    ranks(2, [[
      for _, op in ipairs{"sum", "mean"} do
        local x = leaf(X)
        local y = dist.reduce_scatter(x * 2, {op = op})
        same({2, 3}, y.shape);
        (y * (rank + 1)):sum():backward()
        local by_rank = lt.cat{lt.full({2, 3}, 2.0), lt.full({2, 3}, 4.0)}:to("f64")
        close(op == "sum" and by_rank or by_rank / 2, x.grad)
      end
    ]])
  end)
end)

describe("gradients of gradients", function()
  it("pass through collectives too", function()
    ranks(2, [[
      for _, cat in ipairs{false, true} do
        local x = leaf(lt.full({1, 2}, rank + 1.0, {dtype = "f64"}))
        local y = dist.all_gather(x, {cat = cat}):view(2, 2)
        y:matmul(y:t()):sum():backward{create_graph = true}
        -- on each of two ranks |x0 + x1|^2, of which the derivative is 2 (x0 + x1)
        local first = x.grad
        close(lt.full({1, 2}, 4.0 * (1 + 2), {dtype = "f64"}), first:detach())
        x.grad = nil
        first:sum():backward()
        close(lt.full({1, 2}, 8.0, {dtype = "f64"}), x.grad)
      end
    ]])
  end)
end)

describe("a backward", function()
  it("that one rank does not run is a disagreement that names it", function()
    local output = support.fails[[dist.launch(2, function(rank)
      local x = lt.ones({2}, {requires_grad = true})
      local y = dist.all_gather(x * 2)
      if rank == 0 then y:sum():backward() else dist.barrier() end
    end)]]
    assert.matches("rank 0: reduce_scatter sum %[4%] f32 at script.lua:3 %(backward%); rank 1: "
      .. "barrier.* at script.lua:4", output)
  end)

  it("after the launch says so", function()
    support.passes[[
      local x = lt.ones({2}, {requires_grad = true})
      local y = dist.launch(2, function() local y = dist.all_gather(x * 2) return y end)
      same({2, 2}, y.shape)
      same("backward of all_gather (script.lua:2): the launch that it belongs to has ended",
        error_of(function() y:sum():backward() end):match("backward of.*"))
    ]]
  end)
end)
