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
      same(false, (dist.gather(w, {sync_grads = false}) or W).requires_grad)
      same(false, dist.scatter(lt.cat{w, w}, {sync_grads = false}).requires_grad)
    ]])
  end)
end)

describe("a tensor that requires grad", function()
  it("is refused by what has no gradient, with what to write", function()
    support.ranks(2, [[
      local w = lt.ones({2}, {requires_grad = true})
      local function refused(name, remedy, fn, ...)
        local text = error_of(fn, ...)
        if not text:find(name .. ": has no gradient, and a tensor [2] requires one: write "
          .. "x:detach(), or " .. remedy, 1, true) then error(text) end
      end
      refused("reduce", "use all_reduce", dist.reduce, w)
      if rank == 0 then refused("scatter", "pass one tensor", dist.scatter, {w, w}) end
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

describe("gradients through gather", function()
  it("go to the rank that each part came from", function()
    ranks(3, [[
      local w = leaf(W)
      local y = dist.gather(part:matmul(w), {to = 1})
      same(rank == 1 and {n, 2, 4} or {}, y.shape)
      local loss = rank == 1 and (y ^ 3):sum() or y
      loss:backward()
      local whole = leaf(W);
      (X:matmul(whole) ^ 3):sum():backward()
      close(whole.grad, dist.all_reduce(w.grad))
    ]])
  end)
end)

describe("gradients through scatter", function()
  it("come back from all ranks, over handles and in groups too", function()
    ranks(4, [[
      local group = dist.split(rank == 0 and -1 or 0)
      if not group then return end
      rank, n = group:rank(), 3
      local X = X:narrow(1, 1, 6)
      local x = rank == 2 and leaf(X) or nil
      local handle = group:scatter(x and x * 2, {from = 2, async = true})
      local y = handle:wait()
      close(X:narrow(1, 2 * rank + 1, 2) * 2, y:detach());
      (y ^ 2 * (rank + 1)):sum():backward()
      if x then
        local weights = lt.tensor({1, 1, 2, 2, 3, 3}, {dtype = "f64"}):view(6, 1)
        close(X * 8 * weights, x.grad)
      end
    ]])
  end)
end)

describe("gradients through messages", function()
  it("are those of one process, from stage to stage", function()
    ranks(3, [[
      local function weight(r) return leaf(numbers(3, 3, 1.1 + r)) end
      local function stage(h, w) return h:matmul(w):tanh() end
      local w = weight(rank)
      for step = 1, 2 do
        local h = rank == 0 and numbers(2, 3, 0.3 * step) or dist.recv(rank - 1)
        same(rank > 0, h.requires_grad)
        h = stage(h, w)
        local loss = rank < n - 1 and dist.send(h, rank + 1) or (h ^ 2):sum()
        loss:backward()
      end
      local all = {weight(0), weight(1), weight(2)}
      for step = 1, 2 do
        local h = numbers(2, 3, 0.3 * step)
        for r = 1, 3 do h = stage(h, all[r]) end
        (h ^ 2):sum():backward()
      end
      close(all[rank + 1].grad, w.grad)
    ]])
  end)

  -- Each rank's loss is of what the one before sent; in either order nobody may wait in a circle.
  it("pass around a ring, whichever of send and recv comes first", function()
    ranks(3, [[
      local to, from = (rank + 1) % n, (rank + n - 1) % n
      for _, first in ipairs{"send", "recv"} do
        local x = leaf(part)
        local works = {}
        if first == "recv" then works.recv = dist.recv(from, {async = true}) end
        works.send = dist.send(x * 2, to, {async = true})
        works.recv = works.recv or dist.recv(from, {async = true})
        local y, sent = works.recv:wait(), works.send:wait()
        local loss = (y ^ 2 * (rank + 1)):sum() + sent
        loss:backward()
        close(part * 8 * (to + 1), x.grad)
      end
    ]])
  end)

  it("of a tensor that waits go through it", function()
    ranks(2, [[
      if rank == 0 then
        local x = leaf(part)
        dist.send(x, 1):backward()
        close(part * 0 + 3, x.grad)
      else
        local y = lt.zeros({2, 3}, {dtype = "f64"})
        same(true, rawequal(y, dist.recv(y, {from = 0})));
        (y * 3):sum():backward()
      end
    ]])
  end)

  it("are none where nothing requires any, or gradients are off", function()
    ranks(2, [[
      local x = leaf(part)
      if rank == 0 then
        same(nil, dist.send(part, 1))
        same(nil, dist.send({x}, 1))
        same(nil, lt.no_grad(function() return dist.send(x, 1) end))
      else
        same(false, dist.recv(0).requires_grad)
        same(false, dist.recv(0)[1].requires_grad)
        same(false, dist.recv(0).requires_grad)
      end
    ]])
  end)

  -- A rank's loss may use none of it, or there may be no loss at all.
  it("are zeros in a step where nothing was made of it", function()
    ranks(3, [[
      local d = require "ltrain.c".dist
      local x = leaf(part)
      d.begin_step()
      local y, z
      if rank == 0 then
        dist.send(x * 2, 1)
        y = dist.gather(x * 3, {to = 2})
      elseif rank == 1 then
        y = dist.recv(0)
        dist.gather(x * 3, {to = 2})
      else
        z = dist.gather(x * 3, {to = 2})
      end
      local mine = dist.scatter(rank == 1 and lt.cat{x, x, x} or nil, {from = 1})
      if rank == 2 then (z * 2):sum():backward() end
      d.visit_rest()
      d.end_step()
      close(part * 0 + 6, x.grad)
    ]])
  end)

  it("arrive in a fit on a rank that has no loss", function()
    support.passes[[
      local function train(devices)
        lt.seed(3)
        local Net = lt.Module:extend "Net"
        function Net:init() self.a, self.b = lt.nn.Linear(3, 4), lt.nn.Linear(4, 1) end
        function Net:training_step(batch)
          local rank = dist.rank()
          local h = rank == 0 and self.a(batch[1]):tanh() or dist.recv(0)
          if rank < devices - 1 then dist.send(h, rank + 1) return nil end
          local loss = self.b(h):square():mean()
          return loss
        end
        function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
        local net, x = Net():to "f64", lt.randn(8, 3, {dtype = "f64"})
        lt.Trainer{devices = devices, max_steps = 2, logger = false, enable_checkpointing = false,
          enable_progress_bar = false, enable_model_summary = false}:fit(net, {{x}, {x * 2}})
        return net:state_dict()
      end
      local two, one = train(2), train(1)
      for name, wanted in pairs(one) do
        local worst = (wanted - two[name]):abs():max():item()
        if not (worst <= 1e-12) then error(name .. " differs by " .. worst) end
      end
    ]]
  end)

  local function disagrees(body, ...)
    local output = support.fails(("dist.launch(2, function(rank) local x = "
      .. "lt.ones({2}, {requires_grad = true})\n%s\nend, {timeout = 300})"):format(body))
    for _, wanted in ipairs{...} do
      assert.truthy(output:find(wanted, 1, true), output)
    end
  end

  it("that are not sent back are reported", function()
    disagrees([[
      if rank == 0 then dist.send(x * 2, 1):backward() else dist.recv(0) end
    ]], "rank 0: recv [2] f32 from 1 at script.lua:2 (backward); rank 1: left")
  end)

  it("that nobody asked for are reported", function()
    disagrees([[
      if rank == 0 then dist.send(x * 2, 1) else dist.recv(0):sum():backward() end
    ]], "rank 1: send [2] f32 to 0 at script.lua:2 (backward)", "rank 0: left")
  end)

  it("of another message than was meant are reported", function()
    disagrees([[
      if rank == 0 then
        (dist.send(x, 1) + dist.send(x, 1)):backward()
      else
        local first, second = dist.recv(0, {async = true}), dist.recv(0, {async = true})
        local b = second:wait();
        (first:wait() * b):sum():backward()
      end
    ]], "ranks disagree at message 1 between ranks 0 and 1",
      "rank 0: recv [2] f32 from 1 at script.lua:3 (backward)",
      "rank 1: send [2] f32 to 0 at script.lua:5 (backward)")
  end)

  it("are not taken for a message", function()
    disagrees([[
      if rank == 0 then
        dist.send(x, 1)
        dist.recv(1)
      else
        dist.recv(0):sum():backward()
        dist.barrier()
      end
    ]], "rank 0: recv of a value from 1 at script.lua:4",
      "rank 1: send [2] f32 to 0 at script.lua:6 (backward)")
  end)

  it("need gradients to be on where they are received", function()
    disagrees([[
      lt.no_grad(function()
        if rank == 1 then dist.recv(0) end
      end)
      if rank == 0 then dist.send(x, 1):backward() end
    ]], "rank 1: script.lua:3: recv: rank 0 passed a tensor that requires grad, and here gradients "
      .. "are off")
  end)

  it("have no gradients themselves", function()
    disagrees([[
      if rank == 0 then
        dist.send(x, 1):backward{create_graph = true}
      else
        dist.recv(0):sum():backward()
      end
    ]], "backward of send (script.lua:3): its gradient has no gradient: leave out create_graph")
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
