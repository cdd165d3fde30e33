-- spec/cuda/nccl_failures_spec.lua: what becomes of ranks whose GPUs wait for each other, when one
-- does not come: an end in seconds, with words.
-- tags: sixth, slow, threads, waits
local child = require "spec.cli.child"
local support = require "spec.dist.support"

local LIMIT <const> = 15 -- seconds: far above what it takes

-- Runs a script on 2 ranks with some variables; it must fail in time. Returns what it printed.
local function fails(env, code)
  local folder = child.folder()
  child.write(folder .. "/script.lua", support.prelude .. ([[
    dist.launch(2, function(rank)
      local x = lt.ones(1000, {device = "cuda:" .. rank})
      %s
    end, {timeout = 1})
  ]]):format(code))
  local began = os.time()
  local status, out, err = child.run({ "script.lua" }, { dir = folder, env = env })
  local took = os.time() - began
  child.remove(folder)
  assert.not_equal(0, status, out .. err)
  assert.truthy(took <= LIMIT, ("it took %d s: %s"):format(took, err))
  return err
end

-- Collectives, and a value of the last one: the host waits for the GPU.
local LOOP <const> = [[
  local sum = x
  for k = 1, 4 do sum = dist.all_reduce(sum) end
  print(sum:sum():item())
]]

-- Messages from rank 1 to rank 0, longer than what is under way between GPUs, and a value of them.
local MESSAGES <const> = [[
  local long = lt.ones(200000, {device = x.device})
  for k = 1, 4 do
    if rank == 1 then dist.send(long * k, 0) else dist.recv(long, {from = 1}) end
  end
  print(long:sum():item())
]]

describe("ranks on GPUs", function()
  it("that call different collectives, or with other shapes, are told both", function()
    local err = fails({}, "dist.all_reduce(rank == 0 and x or x:narrow(1, 1, 10))")
    assert.matches("ranks disagree at collective 1: rank 0: all_reduce sum %[1000%] f32 between "
      .. "devices at script.lua:%d+; rank 1: all_reduce sum %[10%] f32 between devices", err)
    err = fails({}, "if rank == 0 then dist.all_reduce(x) else dist.all_gather(x) end")
    assert.matches("rank 0: all_reduce .-; rank 1: all_gather", err)
  end)

  it("of which one leaves a collective out end, and are told who", function()
    local err = fails({}, [[
      dist.all_reduce(x)
      if rank == 0 then dist.all_reduce(x) else while true do end end
    ]])
    assert.matches("rank 1 is late: rank 0 has waited", err)
  end)

  it("of which one is killed end, and are told how", function()
    local err = fails({}, [[
      dist.all_reduce(x)
      if rank == 1 then os.execute("kill -9 " .. dist.world().pid) end
    ]] .. LOOP)
    assert.matches("rank 1 %(pid %d+ on [%w._-]+%) was ended by SIGKILL", err)
  end)

  it("of which one is killed when all have agreed end, and are told how", function()
    local err = fails({ FAKE_NCCL_HANG = "1:2" }, LOOP:gsub("print", [[
      if rank == 1 then os.execute("kill -9 " .. dist.world().pid) end
      print]]))
    assert.matches("rank 1 %(pid %d+ on [%w._-]+%) was ended by SIGKILL", err)
  end)

  it("whose GPUs are stuck in a collective end, and are told in which", function()
    local err = fails({ FAKE_NCCL_HANG = "1:3" }, LOOP)
    assert.matches("stalled: all ranks have arrived and no data has moved for", err)
    assert.matches("all_reduce sum %[1000%] f32 between devices at script.lua:%d+", err)
  end)

  it("whose GPUs are stuck in a collective before those of another group are freed", function()
    local err = fails({ FAKE_NCCL_ERROR = "1:2" }, [[
      local pair, sum = dist.split(0), x
      for k = 1, 3 do sum = dist.all_reduce(dist.all_reduce(sum), {group = pair}) end
      local ok, message = pcall(function() return sum:sum():item() end)
      io.stderr:write("rank ", rank, " has ", (x * 3):sum():item(), "\n")
      error(message, 0)
    ]])
    assert.matches("rank 1 has 3000", err)
    assert.matches("NCCL: remote process exited or there was a network error", err)
  end)

  it("whose link fails are told what NCCL says, in which collective", function()
    local err = fails({ FAKE_NCCL_ERROR = "1:4" }, LOOP)
    assert.matches("rank 1: all_reduce sum %[1000%] f32 between devices at script.lua:%d+: NCCL: "
      .. "remote process exited or there was a network error %(NET/Fake: connection closed by "
      .. "remote peer%)", err)
  end)

  it("that wait for a message are told that its sender was killed, or which it is", function()
    local err = fails({ FAKE_NCCL_HANG = "0:2" }, MESSAGES:gsub("print", [[
      if rank == 1 then os.execute("kill -9 " .. dist.world().pid) end
      print]]))
    assert.matches("rank 1 %(pid %d+ on [%w._-]+%) was ended by SIGKILL", err)
    err = fails({ FAKE_NCCL_HANG = "1:3" }, MESSAGES)
    assert.matches("stalled: all ranks have arrived and no data has moved for", err)
    assert.matches("rank 0: recv of a value from 1 at script.lua:%d+", err)
    err = fails({ FAKE_NCCL_ERROR = "1:3" }, MESSAGES)
    assert.matches("rank 0: recv of a value from 1 at script.lua:%d+: NCCL: remote process", err)
  end)

  it("that exchange messages are told of one that does not fit", function()
    local err = fails({}, [[
      if rank == 0 then dist.send(x, 1) else dist.recv(x:narrow(1, 1, 10) * 1, {from = 0}) end
    ]])
    assert.matches("recv: expected a tensor %[10%] f32, got a tensor %[1000%] f32", err)
    err = fails({}, "if rank == 0 then dist.send(x, 1) else dist.all_reduce(x) end")
    assert.matches("rank 0: send of a value to 1 at .-; rank 1: all_reduce", err)
  end)

  it("of which one never joins are told", function()
    local err = fails({ FAKE_NCCL_ABSENT = "1" }, LOOP)
    assert.matches("stalled: all ranks have arrived", err)
  end)

  it("on one GPU are refused by NCCL, in its words", function()
    local err = fails({}, "dist.all_reduce(lt.ones(3, {device = 'cuda:0'}))")
    assert.matches("all_reduce: NCCL: invalid usage %(Duplicate GPU detected : rank 0 and rank 1 "
      .. "both on CUDA device 0%)", err)
  end)

  it("can be computed with again when a collective was given up, but for its results", function()
    local err = fails({ FAKE_NCCL_ERROR = "1:2" }, [[
      local before = x * 3
      local after = dist.all_reduce(dist.all_reduce(x)) * 2
      local ok, message = pcall(function() return after:sum():item() end)
      if rank == 0 then error(message, 0) end
      io.stderr:write("before ", tostring(before:sum():item()), " after ", error_of(function()
        return after:to "cpu"
      end), "\n")
      error "end"
    ]])
    assert.matches("before 3000.0 after .-a value of cuda was computed from a collective that was "
      .. "given up", err)
  end)

  it("cannot be forked by a process that has used one", function()
    local status, out = support.run [[
      local x = lt.ones(3, {device = "cuda"})
      dist.launch(2, function(rank) dist.all_reduce(lt.ones(3, {device = "cuda:" .. rank})) end)
    ]]
    assert.equal(1, status)
    -- Where it keeps threads, as NVIDIA's driver does, no rank is forked.
    assert.matches(os.getenv "FAKERT" == "threads" and "launch: cannot fork: cuda has been used "
      .. "and has threads %(.-%), so it cannot be used after a fork: use it only in the ranks"
      or "cuda cannot be used here: the process that this one was forked from had used it", out)
  end)
end)
