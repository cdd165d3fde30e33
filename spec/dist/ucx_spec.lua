-- spec/dist/ucx_spec.lua: ranks that meet at an address, or by a file, and talk over UCX: started
-- by hand with MASTER_ADDR and its like, by torchrun, on two hosts. Skipped where this build has no
-- UCX.
-- tags: slow, waits
local child = require "spec.cli.child"
local hosts = require "spec.dist.two_hosts.hosts"
local job = require "spec.dist.job"
local namespaces = require "spec.dist.namespaces"
local support = require "spec.dist.support"

local _, missing = job.can "ucx"
local ltrain <const> = hosts.absolute(os.getenv "LTRAIN" or "build/ltrain")
local LIMIT <const> = (os.getenv "LT_SANITIZE" or "") ~= "" and 120 or 30 -- seconds
local process_id = math.tointeger(tonumber(io.open("/proc/self/stat"):read "n"))
local serial = 0

-- A port that other cases do not use.
local function port()
  serial = serial + 1
  return 21000 + (process_id * 16 + serial) % 9000
end

-- Starts a process for each of `ranks` (assignments of variables), in a folder with the script;
-- returns a list of { status =, text = } in the same order, and the folder. `by`: the words before
-- the program, as a function of the number in the list.
local function start(ranks, code, by)
  local folder = child.folder()
  child.write(folder .. "/script.lua", support.prelude .. code)
  local lines = { ("cd '%s'"):format(folder) }
  for k, variables in ipairs(ranks) do
    lines[#lines + 1] = ("(timeout -k 1 %d %s env %s '%s' run script.lua >%d.out 2>&1; "
      .. "echo $? >%d.status) &"):format(LIMIT, by and by(k) or "", variables, ltrain, k, k)
  end
  lines[#lines + 1] = "wait"
  os.execute(table.concat(lines, "\n"))
  local results = {}
  for k = 1, #ranks do
    local out <close> = assert(io.open(("%s/%d.out"):format(folder, k)))
    local status <close> = assert(io.open(("%s/%d.status"):format(folder, k)))
    results[k] = { text = out:read "a", status = status:read "n" }
  end
  child.remove(folder)
  return results
end

-- The variables of `size` ranks that meet at `address`.
local function by_hand(size, at, address, more)
  local list = {}
  for rank = 0, size - 1 do
    list[rank + 1] = ("MASTER_ADDR=%s MASTER_PORT=%d WORLD_SIZE=%d RANK=%d %s"):format(
      address or "127.0.0.1", at, size, rank, more or "")
  end
  return list
end

local function passes(results)
  for _, one in ipairs(results) do assert.equal(0, one.status, one.text) end
end

local BODY <const> = [[
  local rank, size = dist.rank(), dist.world_size()
  same("ucx", dist.world().backend)
  same(size * (size + 1) / 2, dist.all_reduce(rank + 1.0))
  local wanted = {}
  for r = 1, size do wanted[r] = r - 1 end
  same(wanted, dist.all_gather(rank))
  for _, n in ipairs{1, 5, 8192, 8193, 300001} do
    local x = dist.all_reduce(lt.full({n}, rank + 1.0))
    same({size * (size + 1) / 2, size * (size + 1) / 2}, {x:min():item(), x:max():item()})
    local y = dist.broadcast(lt.full({n}, rank + 0.0), {from = size - 1})
    same({size - 1.0, size - 1.0}, {y:min():item(), y:max():item()})
  end
]]

describe("ranks over UCX", function()
  local function needs_ucx()
    if missing then pending(missing) end
  end

  it("are started with variables set by hand", function()
    needs_ucx()
    passes(start(by_hand(3, port()), BODY .. [[
      same({rank, 3}, {dist.world().local_rank, dist.world().local_ranks})
    ]]))
  end)

  it("are one world for a Trainer", function()
    needs_ucx()
    -- LeakSanitizer faults in a thread of its own where UCX uses shared memory.
    local transports = os.getenv "LT_PRELOAD" and "UCX_TLS=tcp" or ""
    passes(start(by_hand(2, port(), nil, transports), [[
      lt.seed(1)
      local net = lt.nn.Linear(1, 1)
      function net:training_step(x) return self(x):mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 1.0}) end
      local before = net.weight:item()
      local trainer = lt.Trainer {
        strategy = lt.strategies.DDP {process_group_backend = "ucx"}, max_epochs = 1,
        logger = false, enable_checkpointing = false, enable_progress_bar = false,
        enable_model_summary = false,
      }
      trainer:fit(net, {lt.full({1, 1}, dist.rank() == 0 and 1.0 or 3.0)})
      same({2, true}, {trainer.world_size, math.abs(before - net.weight:item() - 2) < 1e-6})
    ]]))
  end)

  it("reduce every dtype by every operation", function()
    needs_ucx()
    local status, output = support.ucx(3, "local rank = dist.rank() " .. support.every_reduction)
    assert.equal(0, status, output)
  end)

  it("send, and do several things at once, in groups too", function()
    needs_ucx()
    local status, output = support.ucx(4, [[
      local rank = dist.rank()
      local next_rank, before = (rank + 1) % 4, (rank - 1) % 4
      local work = dist.send({"from", rank}, next_rank, {async = true})
      same({"from", before}, dist.recv(before))
      work:wait()
      local works = {}
      for k = 1, 20 do
        works[k] = dist.all_reduce(lt.full({k * 1000}, rank + k + 0.0), {async = true})
      end
      for k = 20, 1, -1 do same(6 + 4.0 * k, works[k]:wait()[1]:item()) end
      local group = dist.split(rank % 2, {key = -rank})
      same(rank % 2 == 0 and {2, 0} or {3, 1}, group:all_gather(rank))
      local again = dist.split(rank % 2, {key = -rank}) -- the same ranks, other messages
      local sum, other = group:all_reduce(rank, {async = true}), again:all_reduce(1, {async = true})
      same({2, rank % 2 == 0 and 2 or 4}, {other:wait(), sum:wait()})
      local parts = dist.all_to_all(lt.arange(8):view(4, 2) + 100 * rank)
      same(lt.tensor{2 * rank, 2 * rank + 1}, parts[1])
    ]])
    assert.equal(0, status, output)
  end)

  it("end well with groups that are still there", function()
    needs_ucx()
    local status, output = support.ucx(2, [[
      groups = {}
      for k = 1, 3 do groups[k] = dist.split(0) end
      same({0, 1}, groups[2]:all_gather(dist.rank()))
      io.write(("rank %d is done\n"):format(dist.rank()))
    ]])
    assert.equal(0, status, output)
    for rank = 0, 1 do assert.matches(("rank %d is done\n"):format(rank), output) end
  end)

  it("report how they disagree", function()
    needs_ucx()
    local status, output = support.ucx(3, [[
      dist.all_reduce(lt.zeros(dist.rank() == 1 and 16 or 8))
    ]])
    assert.equal(1, status, output)
    assert.matches("ranks 0, 2: all_reduce sum %[8%] f32[^;]*; rank 1: all_reduce sum %[16%] f32",
      output)
    assert.equal(1, select(2, output:gsub("ranks disagree", "")), output)
  end)

  it("of another job are refused by their token", function()
    needs_ucx()
    local at = port()
    local results = start({
      ("LTRAIN_TOKEN=mine LT_LAUNCH_TIMEOUT=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=2 "
        .. "RANK=0"):format(at),
      ("LTRAIN_TOKEN=other MASTER_ADDR=127.0.0.1 MASTER_PORT=%d WORLD_SIZE=2 RANK=1"):format(at),
    }, "dist.barrier()")
    assert.equal(2, results[1].status, results[1].text)
    assert.equal(2, results[2].status, results[2].text)
    assert.matches("rank 1 of 2 has not come in time %(LT_LAUNCH_TIMEOUT%); a rank 1 of %S+ has "
      .. "another token %(LTRAIN_TOKEN%)", results[1].text)
    assert.matches("rank 0 of another job %(its token differs: LTRAIN_TOKEN%)", results[2].text)
  end)

  it("meet by a file, whatever an earlier job has left in it", function()
    needs_ucx()
    local folder = child.folder()
    local file = folder .. "/rank0"
    for _, left in ipairs { "", "ltrain2 0123456789abcdef 1 127.0.0.1\n", "something else" } do
      if left ~= "" then child.write(file, left) end
      local list = {}
      for rank = 0, 2 do
        list[rank + 1] = ("MASTER_ADDR=file://%s WORLD_SIZE=3 RANK=%d"):format(file, rank)
      end
      passes(start(list, BODY))
      assert.is_nil(io.open(file))
    end
    child.remove(folder)
  end)

  it("say which file they waited for, or could not write", function()
    needs_ucx()
    local results = start({
      "LT_LAUNCH_TIMEOUT=1 MASTER_ADDR=file:///nowhere/rank0 WORLD_SIZE=2 RANK=0",
      "LT_LAUNCH_TIMEOUT=1 MASTER_ADDR=file:///nowhere/rank0 WORLD_SIZE=2 RANK=1",
      "MASTER_ADDR=file:nowhere WORLD_SIZE=2 RANK=1",
    }, "dist.barrier()")
    for k, wanted in ipairs {
      "rank 0 cannot write /nowhere/rank0 %(MASTER_ADDR%): No such file or directory",
      "rank 1 cannot join rank 0 at /nowhere/rank0 in time: rank 0 has not written this file",
      "not the absolute path of a file, file:///shared/job1 %(MASTER_ADDR%): file:nowhere" } do
      assert.equal(2, results[k].status, results[k].text)
      assert.matches(wanted, results[k].text)
    end
  end)

  it("that are missing are named, to all that came", function()
    needs_ucx()
    local list = by_hand(4, port(), nil, "LT_LAUNCH_TIMEOUT=2")
    table.remove(list, 3)
    for _, one in ipairs(start(list, "dist.barrier()")) do
      assert.equal(2, one.status, one.text)
      assert.matches("Torch: .*rank 2 of 4 has not come in time", one.text)
    end
  end)

  it("that come twice are refused, and the others named", function()
    needs_ucx()
    local list = by_hand(3, port(), nil, "LT_LAUNCH_TIMEOUT=2")
    list[3] = list[2]
    local twice = 0
    for k, one in ipairs(start(list, "dist.barrier()")) do
      assert.equal(2, one.status, one.text)
      if k == 1 then assert.matches("rank 2 of 3 has not come", one.text) end
      twice = twice + select(2, one.text:gsub("ltrain: Torch: [^\n]*rank 1 was started twice", ""))
    end
    assert.is_true(twice >= 1)
  end)

  it("of another world size are refused", function()
    needs_ucx()
    local list = by_hand(2, port(), nil, "LT_LAUNCH_TIMEOUT=2")
    list[2] = list[2]:gsub("WORLD_SIZE=2", "WORLD_SIZE=3")
    local results = start(list, "dist.barrier()")
    assert.matches("rank 1 of %S+ was started as one of 3 ranks, rank 0 as one of 2 "
      .. "%(WORLD_SIZE%)", results[2].text)
  end)

  it("end when one is killed, with its name", function()
    needs_ucx()
    local status, output = support.ucx(3, [[
      dist.barrier()
      if dist.rank() == 1 then
        os.execute("kill -9 " .. dist.world().pid)
      end
      while true do dist.all_reduce(lt.zeros(100000)) end
    ]])
    assert.not_equal(0, status, output)
    assert.matches("rank 1 %(pid %d+ on %S+%) ended without an error message", output)
  end)

  it("end when one is killed, however they reach each other", function()
    needs_ucx()
    for _, tls in ipairs { "tcp", "tcp,posix,cma" } do
      local results = start(by_hand(3, port(), nil, "UCX_TLS=" .. tls), [[
        dist.barrier()
        local large = lt.zeros(3000000)
        if dist.rank() == 1 then
          dist.all_reduce(large, {async = true})
          os.execute("kill -9 " .. dist.world().pid)
        end
        while true do dist.all_reduce(large) end
      ]])
      assert.matches("rank 1 %(pid %d+ on %S+%) ended without an error message",
        results[1].text .. results[3].text)
    end
  end)

  it("connect two hosts", function()
    needs_ucx()
    local reason = namespaces.missing {}
    if reason then return pending(reason) end
    local two <close> = hosts.up()
    passes(start(by_hand(4, port(), "lta", "UCX_TLS=tcp UCX_NET_DEVICES=eth0"), BODY .. [[
      same({2, rank // 2, rank % 2},
        {dist.world().nodes, dist.world().node_rank, dist.world().local_rank})
    ]], function(k) return two:on(k <= 2 and "lta" or "ltb") end))
  end)

  it("are started by torchrun, one host and two agents", function()
    needs_ucx()
    local torchrun = os.getenv "LT_TORCHRUN" or "build/venv-torch/bin/torchrun"
    local file = io.open(torchrun)
    if not file then return pending("no torchrun (LT_TORCHRUN)") end
    file:close()
    local folder, at = child.folder(), port()
    child.write(folder .. "/script.lua", support.prelude .. BODY)
    local agent = ("timeout -k 1 %d %s --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d "
      .. "--rdzv_endpoint 127.0.0.1:%d --rdzv_id spec --no-python '%s' run script.lua 2>&1")
      :format(2 * LIMIT, hosts.absolute(torchrun), at, ltrain)
    local pipe <close> = assert(io.popen(("cd '%s'; (%s; echo $? >other) & %s; echo \"exit $?\"; "
      .. "wait; cat other"):format(folder, agent, agent)))
    local output = pipe:read "a"
    child.remove(folder)
    assert.matches("exit 0\n0\n$", output)
  end)
end)
