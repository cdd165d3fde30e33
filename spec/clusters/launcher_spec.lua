-- spec/clusters/launcher_spec.lua: `--launcher mpi` with a real mpirun on this machine.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"
local hosts = require "spec.dist.two_hosts.hosts"
local job = require "spec.dist.job"
local mpirun = require "ltrain.clusters.mpirun"

local missing = mpirun.missing()
local when = missing and pending or it

describe("--launcher mpi" .. (missing and " (left out: " .. missing .. ")" or ""), function()
  local folder

  setup(function() folder = child.folder() end)
  teardown(function() child.remove(folder) end)

  local function run(script, ...)
    child.write(folder .. "/script.lua", 'local lt = require "ltrain"\n' .. script)
    local began = c.runtime.clock()
    local status, out, err = child.run({ "run", "script.lua", "--launcher", "mpi", ... },
      { dir = folder })
    return status, out, err, c.runtime.clock() - began
  end

  when("makes ranks of one world, and hands the script its arguments", function()
    local status, out, err = run([[
      local sum = lt.dist.all_reduce(lt.dist.rank() + 1)
      if lt.dist.rank() == 0 then print(sum, lt.dist.world().backend, ...) end
    ]], "--devices", "2", "--seed", "1", "--", "--hosts", "a b")
    assert.equal(0, status, err)
    assert.equal("3\tmpi\t--hosts\ta b\n", out)
  end)

  when("says when ranks share cores", function()
    local ranks = c.runtime.process.cores() + 1
    local status, out, err = run("if lt.dist.rank() == 0 then print(lt.dist.world_size()) end",
      "--devices", tostring(ranks))
    assert.equal(0, status, err)
    assert.equal(ranks .. "\n", out)
    assert.matches(("%d ranks on %d cores: oversubscribed"):format(ranks, ranks - 1), err, 1, true)
  end)

  when("ends with the first error, reported once, and soon", function()
    local status, _, err, took = run([[
      if lt.dist.rank() == 1 then error "boom" end
      while true do pcall(lt.dist.barrier) end
    ]], "--devices", "2")
    assert.equal(1, status, err)
    local _, times = err:gsub("rank 1: script%.lua:2: boom", "")
    assert.equal(1, times, err)
    assert(took < 25, took) -- wanted: 2 s; mpirun alone would sleep for 80
  end)

  when("ends when it is asked to", function()
    for signal, status in pairs { INT = 130, TERM = 143 } do
      local found, _, err, took = run(([[
        lt.dist.barrier()
        if lt.dist.rank() == 0 then
          local pid = require "ltrain.c".runtime.pid()
          local parent = io.popen("ps -o ppid= -p $(ps -o ppid= -p " .. pid .. ")")
          os.execute("kill -%s " .. parent:read("a"))
        end
        while true do end
      ]]):format(signal), "--devices", "2")
      assert.equal(status, found, err)
      assert(took < 25, took) -- wanted: 2 s
    end
  end)

  when("leaves nothing when it is asked to end while a host says nothing", function()
    child.write(folder .. "/ssh", '#!/bin/sh\n[ "$1" = -G ] && { echo proxycommand x; exit; }\n'
      .. ": >called\nexec sleep 600\n")
    assert(os.execute(("chmod a+x %s/ssh"):format(folder)))
    local one <close> = job.start("", {
      words = hosts.binary .. " run script.lua --launcher mpi --hosts localhost,silent --devices 1",
      env = ("PATH=%s:$PATH"):format(folder),
    })
    assert.is_true(one:wait_for "called", one:read "err")
    assert.is_true(job.signal("TERM", one:find("^%S*ltrain run")[1]))
    assert.truthy(one:wait_gone(30)) -- wanted: 2 s
    assert.equal(143, one:status())
  end)
end)
