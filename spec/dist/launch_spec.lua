-- spec/dist/launch_spec.lua: lt.dist.launch: real processes, what they see, how they end.
-- tags: slow, waits
local support = require "spec.dist.support"

local RACES <const> = (os.getenv("LT_SANITIZE") or ""):find("thread", 1, true) ~= nil

describe("lt.dist.launch", function()
  it("runs a function on n processes and returns rank 0's results", function()
    support.passes[[
      local pids
      local a, b, c, d = dist.launch(4, function(rank)
        same(4, dist.world_size())
        same(rank, dist.rank())
        pids = dist.all_gather(dist.world().pid)
        return "result", nil, rank, pids
      end)
      same({"result", 0}, {a, c})
      same(nil, b)
      local seen = {}
      for _, pid in ipairs(d) do seen[pid] = true end
      local n = 0
      for _ in pairs(seen) do n = n + 1 end
      same(4, n)
      same(0, dist.rank())
      same(1, dist.world_size())
    ]]
  end)

  it("reports any rank that calls os.exit, whatever the status, and fails", function()
    for rank = 0, 1 do
      for _, status in ipairs { 0, 3 } do
        local ended, text = support.run(([[
          dist.launch(2, function(rank)
            if rank == %d then os.exit(%d) end
            dist.barrier()
          end)
          print "after"
        ]]):format(rank, status))
        assert.equal(rank == 0 and status > 0 and status or 1, ended)
        assert.matches(("^ltrain: rank %d: script.lua:2: os.exit%%(%d%%) was called in a rank\n")
          :format(rank, status), text)
        assert.not_matches("after", text)
      end
    end
  end)

  it("refuses an LT_TIMEOUT that is not a number of seconds", function()
    for _, text in ipairs { "bad", "0", "-1", "5x", "nan" } do
      local pipe <close> = assert(io.popen(("LT_TIMEOUT=%s '%s' -e 'lt.dist.launch(2, print)' 2>&1")
        :format(text, os.getenv("LTRAIN") or "ltrain")))
      assert.matches(("^ltrain: %%(command line%%):1: lt.dist.launch: LT_TIMEOUT must be a number "
        .. "of seconds above 0: got '%s'\n"):format(text:gsub("%-", "%%-")), pipe:read "a")
    end
  end)

  it("shows the world", function()
    support.passes[[
      local before = dist.world().threads
      dist.launch(2, function(rank)
        local world = dist.world()
        same({"shm", rank, 2, rank, 2, 0, 1, true}, {world.backend, world.rank, world.ranks,
          world.local_rank, world.local_ranks, world.node_rank, world.nodes, world.forked})
        same("binary tree", world.reduction_order)
        same(world.pid, world.pids[rank + 1])
        same(2, #world.hosts)
        same(true, world.threads >= 1 and world.threads <= math.max(1, before // 2))
        same(7.0, world.timeout)
      end, {timeout = 7})
      same(before, dist.world().threads)
    ]]
  end)

  it("gives closures, upvalues and nested functions to every rank, each a copy", function()
    support.passes[[
      local count, t = 1, {list = {1, 2, 3}}
      local function outer(k)
        local function inner(rank)
          count = count + rank
          t.list[rank + 1] = 10 * k
          return dist.all_gather{count, t.list[1], t.list[2]}
        end
        local all = dist.launch(2, inner)
        return all
      end
      local all = outer(5)
      same({{1, 50, 2}, {2, 1, 50}}, all)
      same(1, count) -- rank 0 is this process
      same({50, 2, 3}, t.list)
      local object = setmetatable({}, {__call = function(_, rank) return rank + 1 end})
      same(1, dist.launch(2, object))
    ]]
  end)

  it("keeps ranks whose timeout is shorter than the pause between two beats", function()
    support.passes[[
      dist.launch(2, function()
        dist.long(function() os.execute "sleep 2" end)
        dist.barrier()
      end, {timeout = 0.5})
    ]]
  end)

  it("works in coroutines, and does not let one yield out of a rank", function()
    support.passes[[
      local f = coroutine.wrap(function(n)
        local sum = dist.launch(n, function()
          local inside = coroutine.wrap(function() coroutine.yield(dist.all_reduce(1)) end)
          return inside()
        end)
        local again = coroutine.yield(sum)
        return dist.launch(again, function() return dist.all_reduce(1) end)
      end)
      same(3, f(3))
      same(2, f(2))
      local message = error_of(coroutine.wrap(function()
        dist.launch(2, function() coroutine.yield(1) end)
      end))
      same(true, message:find "script.lua:12: dist.launch: the function yielded" ~= nil)
      print "once"
    ]]
  end)

  it("leaves nothing behind, twenty times", function()
    support.passes[[
      local function count(command)
        -- Not over a pipe: the command may see the end of it that this process is about to close.
        local path <const> = os.tmpname()
        os.execute(command:gsub("PID", tostring(dist.world().pid)) .. " >" .. path)
        local file <close> = io.open(path)
        os.remove(path)
        return tonumber(file:read "n")
      end
      local function left()
        collectgarbage()
        return {
          files = count "ls /proc/PID/fd | wc -l", threads = count "ls /proc/PID/task | wc -l",
          children = count "cat /proc/PID/task/PID/children | wc -w",
          shared = count "grep -c -e 'rw-s' /proc/PID/maps",
        }
      end
      local function once(i)
        local g
        same(3, dist.launch(2, function(rank)
          g = dist.split(rank)
          local x = lt.ones({1000}, {requires_grad = true})
          dist.all_gather(x * 2):sum():backward()
          if i % 10 == 0 then error "boom" end
          return dist.all_reduce(rank + 1)
        end))
      end
      pcall(once, 10)
      once(1)
      local before = left()
      for i = 1, 20 do pcall(once, i) end
      same(before, left())
    ]]
  end)

  it("prints what was written before once", function()
    local output = support.passes[[
      io.write "before "
      dist.launch(2, function(rank)
        dist.barrier()
        if rank == 1 then io.write "child " end
        dist.barrier()
      end)
      io.write "after"
    ]]
    assert.equal("before child after", output)
  end)

  it("finalises nothing in children", function()
    support.passes[[
      local function guard(name) -- removes its file when it is collected
        local file <close> = io.open(name, "w")
        return setmetatable({}, {__gc = function()
          local log <close> = io.open("log", "a")
          log:write(name, "\n")
          os.remove(name)
        end})
      end
      local alive = guard "alive"
      do local _ = guard "garbage" end
      dist.launch(3, function()
        collectgarbage()
        collectgarbage()
        dist.barrier()
      end)
      local file <close> = io.open "alive"
      same(true, file ~= nil)
      local log <close> = io.open "log"
      same("garbage\n", log:read "a") -- once, before the fork
      alive = nil
    ]]
  end)

  it("starts in milliseconds", function()
    local output = support.passes[[
      local c = require "ltrain.c"
      local best = math.huge
      for _ = 1, 5 do
        local start = c.runtime.clock()
        dist.launch(2, function() dist.all_reduce(1) end)
        best = math.min(best, c.runtime.clock() - start)
      end
      print(best)
    ]]
    assert.is_true(tonumber(output) < 0.5, output) -- 10 times the bound
  end)
end)

describe("an error in a launch", function()
  it("is raised in the parent with its rank, which may launch again", function()
    support.passes[[
      for failing = 0, 2 do
        local message = error_of(dist.launch, 3, function(rank)
          if rank == failing then error "boom" end
          dist.barrier()
        end)
        same("rank " .. failing .. ": script.lua:3: boom", message)
        same("ranks", lt.last_error().code)
        same(message, lt.last_error().message)
        same(3, dist.launch(3, function() return dist.all_reduce(1) end))
      end
    ]]
  end)

  it("ends ranks that loop, compute or catch everything", function()
    if RACES then pending("ThreadSanitizer delivers signals at calls of the C library alone") end
    support.passes[[
      local functions = {
        function() while true do end end,
        function() while true do pcall(dist.barrier) end end,
        function() coroutine.wrap(function() while true do end end)() end,
        function() local x = lt.ones{64, 64} while true do pcall(x.matmul, x, x) end end,
        function() dist.recv(1) end,
        function() dist.long(dist.barrier) end,
      }
      for _, fn in ipairs(functions) do
        local message = error_of(dist.launch, 2, function(rank)
          if rank == 1 then error "boom" end
          fn()
        end)
        same("rank 1: script.lua:11: boom", message)
      end
    ]]
  end)

  it("is what a script ends with, reported once", function()
    local output = support.fails[[dist.launch(3, function(rank)
      if rank == 2 then lt.ones{2}:matmul(lt.ones{3}) end
      dist.barrier()
    end)]]
    assert.matches("^ltrain: rank 2: script.lua:2: matmul: ", output)
    local _, times = output:gsub("matmul", "")
    assert.equal(1, times, output)
  end)

  it("of rank 0 keeps its value when that is not text", function()
    support.passes[[
      local value = {code = 3}
      same(true, rawequal(value, error_of(dist.launch, 2, function(rank)
        if rank == 0 then error(value) end
        dist.barrier()
      end)))
      local message = error_of(dist.launch, 2, function(rank)
        if rank == 1 then
          error(setmetatable({}, {__tostring = function() return "an object" end}))
        end
        dist.barrier()
      end)
      same("rank 1: script.lua:8: an object", message)
    ]]
  end)

  it("is os.exit in a rank, with its line", function()
    support.passes[[
      local exit = os.exit
      for _, leave in ipairs{function() os.exit(3) end, function() exit() end} do
        local message = error_of(dist.launch, 2, function(rank)
          if rank == 1 then leave() end
          dist.barrier()
        end)
        same(true, message:find "^rank 1: script.lua:2: os.exit%(3?%) was called in a rank" ~= nil)
      end
    ]]
    local status, output = support.run[[
      dist.launch(2, function(rank)
        if rank == 0 then os.exit(7) end
        dist.barrier()
      end)
    ]]
    assert.equal(7, status, output)
  end)

  it("is a launch in a launch", function()
    assert.matches("rank %d: script.lua:1: dist.launch: called in a launch", support.fails[[
      dist.launch(2, function() dist.launch(2, print) end)
    ]])
  end)
end)
