-- spec/cuda/nccl_messages_spec.lua: messages from GPU to GPU, by a fake NCCL (fake_nccl.cpp) that
-- counts them: tensors, batches, gradients, and what a pipeline sends.
-- tags: slow, third, unsanitized
local net = require "spec.parallel.pipeline_net"
local support = require "spec.dist.support"

-- In a script: counts(), what this rank's fakes have counted since it was called last.
local COUNTS <const> = [[
  local counts = package.loadlib((os.getenv("LTRAIN_BACKENDS"):gsub("/backends$", "/counts.so")),
    "luaopen_counts")()
]]

-- Of three ranks on a GPU each: its neighbours, and a tensor that no other has.
local RING <const> = COUNTS .. [[
  local device = "cuda:" .. rank
  local right, left = (rank + 1) % 3, (rank + 2) % 3
  local function of(r) return lt.full({3, 2}, r + 0.5, {dtype = "f64"}) end
  local x = of(rank):to(device)
]]

describe("collectives with one rank between GPUs", function()
  it("go from memory to memory: reduce, and scatter into `out`", function()
    support.ranks(3, RING .. [[
      local whole = rank == 1 and lt.arange(0, 12):to("f64"):reshape(6, 2):to(device) or nil
      local out = lt.zeros({2, 2}, {dtype = "f64", device = device})
      counts()
      local y = dist.scatter(whole, {from = 1, out = out})
      local sum = dist.reduce(x, {to = 2})
      local mean = dist.reduce(x, {to = 0, op = "mean"})
      same(0, counts().copies)
      same(true, rawequal(y, out))
      same(lt.arange(4 * rank, 4 * rank + 4):to("f64"):reshape(2, 2), out:to "cpu")
      same(rank == 2 and lt.full({3, 2}, 4.5, {dtype = "f64"}) or nil, sum and sum:to "cpu")
      same(rank == 0 and lt.full({3, 2}, 1.5, {dtype = "f64"}) or nil, mean and mean:to "cpu")
    ]])
  end)
end)

describe("a message between GPUs", function()
  it("goes from memory to memory, and touches no memory of the host", function()
    support.ranks(3, RING .. [[
      local room = x * 0
      counts()
      local sent = dist.send(x, right, {async = true})
      same(true, rawequal(room, dist.recv(room, {from = left})))
      sent:wait()
      sent = dist.send(x:t(), left, {async = true})
      local got = dist.recv(right, {device = device})
      sent:wait()
      local c = counts()
      same({2, 0}, {c.messages, c.copies})
      same(of(left), room:to "cpu")
      same(device, got.device)
      same(of(right):t(), got:to "cpu")
    ]])
  end)

  it("has tensors of both, nested, empty and of other dtypes", function()
    support.ranks(3, RING .. [[
      local sent = dist.send({x, n = {x:to "bf16", lt.ones(2), x:narrow(1, 1, 0)}, "and"}, right,
        {async = true})
      counts()
      local got = dist.recv(left, {device = device})
      sent:wait()
      same(2, counts().messages) -- nothing is empty, the one of the host is copied
      for _, t in ipairs {got[1], got.n[1], got.n[2], got.n[3]} do same(device, t.device) end
      same({of(left), lt.ones(2), "and", 0}, {got[1]:to "cpu", got.n[2]:to "cpu", got[2],
        got.n[3]:numel()})
      same(of(left):to "bf16", got.n[1]:to "cpu")
    ]])
  end)

  it("goes over the host where an end is not on the GPU of its link", function()
    support.ranks(3, RING .. [[
      local function pass(what, into)
        local sent = dist.send(what, right, {async = true})
        local got = lt.is_tensor(into) and dist.recv(into, {from = left})
          or dist.recv(left, {device = into})
        sent:wait()
        same(of(left), got:to "cpu")
        return got.device
      end
      counts()
      same("cpu", pass(x))
      same("cpu", pass(x, of(0)))
      same(device, pass(of(rank), device))
      same(device, pass(of(rank), x * 0))
      same(0, counts().messages)
      same(device, pass(x, device))
      same("cuda:3", pass(x:to "cuda:3", "cuda:3"))
      same(device, pass(x:to "cuda:3", device))
      same(1, counts().messages)
      same(device, pass(x, x * 0))
    ]])
  end)

  it("goes over the host between two ranks on one GPU, which NCCL refuses", function()
    support.ranks(2, COUNTS .. [[
      local x = lt.full({3}, rank + 1, {device = "cuda:0"})
      local room = x * 0
      dist.batch{{"send", x, 1 - rank}, {"recv", room, {from = 1 - rank}}}
      same(lt.full({3}, 2 - rank), room:to "cpu")
      same(0, counts().messages)
    ]])
  end)

  it("does not wait for those to and from other ranks, nor for collectives", function()
    support.ranks(3, RING .. [[
      for _ = 1, 3 do
        local coming = {dist.recv(left, {device = device, async = true}),
          dist.recv(right, {device = device, async = true})}
        local sum = dist.all_reduce(x, {async = true})
        -- Rank 0 begins a chain, whose messages need what came before them.
        local y = rank == 0 and x or coming[1]:wait() + x
        local sent = dist.send(y, right, {async = true})
        local back = dist.send(y * sum:wait(), left, {async = true})
        if rank == 0 then same(of(0) + of(1) + of(2), coming[1]:wait():to "cpu") end
        local chain = of(0)
        for r = 1, right do chain = chain + of(r) end
        if right == 0 then chain = of(0) end
        same(chain * (of(0) + of(1) + of(2)), coming[2]:wait():to "cpu")
        sent:wait()
        back:wait()
      end
    ]])
  end)

  it("may be part of a batch", function()
    support.ranks(3, RING .. [[
      local a, b = x * 0, x * 0
      counts()
      local got = dist.batch{{"send", x, right}, {"all_reduce", x}, {"send", x * 2, left},
        {"recv", b, {from = right}}, {"recv", a, {from = left}}, {"gather", x, {to = 1}}}
      same(2, counts().messages)
      same(of(left), a:to "cpu")
      same(of(right) * 2, b:to "cpu")
      same(of(0) + of(1) + of(2), got[2]:to "cpu")
      if rank == 1 then same(lt.stack({of(0), of(1), of(2)}, 1), got[6]:to "cpu") end
    ]])
  end)

  it("has its gradient come back between them", function()
    support.ranks(2, COUNTS .. [[
      local device = "cuda:" .. rank
      local x = lt.tensor({1.0, 2}, {requires_grad = true, device = device})
      counts()
      if rank == 0 then
        dist.send(x * 3, 1):backward()
        same(lt.full({2}, 15.0), x.grad:to "cpu")
      else
        (dist.recv(0, {device = device}) * 5):sum():backward()
      end
      local sent = 0
      repeat -- nobody waits for a gradient that is sent: operations go on with it
        sent = sent + counts().messages + lt.zeros{}:item()
      until sent > 0
      same(1.0, sent)
    ]])
  end)

  it("is of groups, which come and go", function()
    support.ranks(3, RING .. [[
      for k = 1, 3 do
        local group = dist.split(rank < 2 and 0 or 1)
        if rank < 2 then
          local room = x * 0
          group:batch{{"send", x * k, 1 - rank}, {"recv", room, {from = 1 - rank}}}
          same(of(1 - rank) * k, room:to "cpu")
        end
        group = nil
        collectgarbage()
        collectgarbage()
      end
    ]])
  end)
end)

describe("a pipeline of GPUs", function()
  -- What the script prints; of two ranks all messages must have gone by NCCL.
  local function digits(n, options)
    return net.scripts.output(n, COUNTS .. ([[
      local function digits(list)
        local texts = {}
        for name, x in pairs(list) do
          texts[#texts + 1] = ("%%s=%%.9g"):format(name, x:square():sum():item())
        end
        table.sort(texts)
        return table.concat(texts, " ")
      end
      print(digits((fit(n == 1 and "single_device" or pipeline {%s}, n)):state_dict()))
      -- In each of ten batches there are four microbatches, the first of which is not divided.
      if n > 1 and counts().messages < 9 * 4 then error "messages went over the host" end
    ]]):format(options or ""))
  end

  for _, options in ipairs { "schedule = '1f1b'", "schedule = 'gpipe'",
    "schedule = 'interleaved', chunks = 2", "schedule = 'zero_bubble'" } do
    it(("trains as one, and sends by NCCL: %s"):format(options), function()
      local wanted = digits(1)
      assert.not_equal("", wanted)
      assert.equal(wanted, (digits(2, options)))
    end)
  end

  it("has more stages than two", function()
    assert.equal(digits(1), (digits(4, "split = {1, 2, 4}")))
  end)
end)
