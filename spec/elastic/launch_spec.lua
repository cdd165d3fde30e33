-- spec/elastic/launch_spec.lua: `ltrain launch` on one host: restarts, resuming, crash loops,
-- signals, and that nothing is left behind.
-- tags: half, slow, waits
local c = require "ltrain.c"
local launchers = require "spec.elastic.launchers"

local missing = launchers.missing()

-- A launch of one host that has ended: it, its exit status, its output and messages.
local function ended(script, words)
  local one = launchers.new(script)
  one:start("a", words or "--nproc_per_node 2")
  local status = one:status "a"
  return one, status, one:read("a", "out"), one:read("a", "err")
end

describe("ltrain launch", function()
  before_each(function() if missing then pending(missing) end end)

  it("runs the ranks of a host, and ends as they do", function()
    local one <close>, status, out, err = ended [[
      print(("rank %d of %d, incarnation %d, reason '%s', arg %s"):format(lt.dist.rank(),
        lt.dist.world_size(), world.incarnation, world.reason, arg[1]))
    ]]
    assert.equal(0, status, one:all())
    assert.equal(1, one:count "rank 0 of 2, incarnation 0, reason '', arg nil\n", out)
    assert.equal(1, one:count "rank 1 of 2, incarnation 0, reason '', arg nil\n", out)
    assert.matches("ltrain: launch: the job has ended well\n$", err)
  end)

  it("runs a single rank without communication, with the arguments of the script", function()
    local one <close> = launchers.new [[
      print(lt.dist.world_size(), lt.clusters.current().name, arg[1], io.read "a" == "")
      train {max_epochs = 1}
    ]]
    one:start("a", "--max_epochs 2", {})
    one:status "a"
    assert.equal(1, one:count "1\tLaunch\tnil\ttrue\n", one:all())
    assert.equal(1, one:count "to step 6\n", one:all())
  end)

  it("starts ranks again when one is killed, and they resume from the checkpoint", function()
    local one <close>, status, out, err = ended [[
      function step(k)
        if k == 7 and world.incarnation == 0 and lt.dist.rank() == 1 then kill() end
      end
      train()
    ]]
    assert.equal(0, status, one:all())
    assert.matches("start 0 of 2 ranks: from step 0: \n", out, 1, true)
    local from = tonumber(out:match "start 1 of 2 ranks: from step (%d+): rank 1 on host %S+ fail")
    assert.is_true(from ~= nil and from >= 6 and from <= 7, one:all())
    assert.matches("to step 12\n", out, 1, true)
    assert.matches("ltrain: launch: rank 1 on host %S+ failed[^\n]*: [^\n]*was ended by SIGKILL",
      err)
    assert.matches("round 1: 2 ranks on %S+: restart 1 of 3\n", err)
    assert.matches("the job has ended well after 1 restart; first failure: rank 1 on host "
      .. "[^\n]+\n$", err)
    assert.same({ "version_0" }, c.io.list_folder(one.folder .. "/ltrain_logs")) -- one run
  end)

  it("draws the seed of random numbers once for all rounds", function()
    local one <close>, status, out = ended([[
      print("drawn", require "ltrain.c".runtime.rng_state().seed)
      if world.incarnation == 0 then kill() end
    ]], "--nproc_per_node 1")
    assert.equal(0, status, one:all())
    local first, second = out:match "drawn\t(%d+)\n.*drawn\t(%d+)\n"
    assert.is_string(first, one:all())
    assert.equal(first, second)
  end)

  it("goes on when the same rank is killed again, each time later without new snapshots", function()
    local one <close>, status, _, err = ended [[
      function step(k)
        local n = world.incarnation
        if k == 5 + n and n < 3 and lt.dist.rank() == 1 then kill() end
      end
      train {snapshot_every = false}
    ]]
    assert.equal(0, status, one:all())
    assert.matches("start 3 of 2 ranks", one:read("a", "out"), 1, true)
    assert.matches("waits 1 s: 2 rounds in a row have failed without a new snapshot\n", err)
    assert.matches("waits 2 s: 3 rounds in a row", err)
  end)

  it("does not wait where each round comes further", function()
    local one <close>, status, _, err = ended [[
      function step(k)
        local n = world.incarnation
        if k == 4 + 3 * n and n < 3 and lt.dist.rank() == 1 then nap(0.3) kill() end
      end
      train {snapshot_every = 0}
    ]]
    assert.equal(0, status, one:all())
    assert.matches("start 3 of 2 ranks", one:read("a", "out"), 1, true)
    assert.not_matches("waits", err)
  end)

  it("ends a job whose rank fails twice in the same way at the same step", function()
    local one <close>, status, _, err = ended([[
      function step(k) if k == 2 and lt.dist.rank() == 1 then error "a number is wrong" end end
      train()
    ]], "--nproc_per_node 2 --max_restarts 9")
    assert.equal(1, status, one:all())
    assert.matches("ltrain: launch: the job has failed: rank 1 on host %S+ failed: [^\n]*"
      .. "a number is wrong", err)
    assert.matches("for the second time at step 2", err, 1, true)
  end)

  it("ends a job that fails at the same step for want of space, in another folder each time",
    function()
      local one <close>, status, _, err = ended([[
        function step(k)
          if k == 2 and lt.dist.rank() == 1 then
            error(("cannot write version_%d/a.ckpt: No space left"):format(world.incarnation))
          end
        end
        train {snapshot_every = false}
      ]], "--nproc_per_node 2 --max_restarts 9")
      assert.equal(1, status, one:all())
      assert.matches("the job has failed: rank 1 on host %S+ failed: [^\n]*cannot write "
        .. "version_1/a.ckpt: No space left: for the second time at step 2 after 1 restart;", err)
    end)

  it("ends a job that fails too often, each time with the message of the rank", function()
    local one <close>, status, _, err = ended([[error("number " .. world.incarnation)]],
      "--nproc_per_node 2 --max_restarts 1")
    assert.equal(1, status, one:all())
    assert.matches("failed: [^\n]*number 0\n", err)
    assert.matches("the job has failed: rank %d on host %S+ failed: [^\n]*number 1", err)
  end)

  it("saves and ends at SIGTERM; the same command resumes", function()
    local one <close> = launchers.new [[
      function step(k) if k == 4 then mark "there" end nap(0.05) end
      train {max_epochs = 8}
    ]]
    local words = ("--nproc_per_node 2 --rdzv file://%s/store"):format(one.folder)
    one:start("a", words)
    assert.is_true(one:wait_for "there", one:all())
    one:signal("a", "TERM")
    assert.equal(143, one:status "a", one:all())
    assert.matches("ltrain: launch: SIGTERM: host %S+ has left the job\n$", one:read("a", "err"))
    assert.is_truthy(one:wait_gone(5), one:all())
    one:start("b", words)
    assert.equal(0, one:status "b", one:all())
    local from = tonumber(one:read("b", "out"):match "from step (%d+)")
    assert.is_true(from ~= nil and from > 4, one:all())
    assert.equal(1, one:count "to step 24\n", one:all())
  end)

  it("says that nothing was run where the job has ended already", function()
    local one <close> = launchers.new [[print "runs" train {max_epochs = 1}]]
    local words = ("--rdzv file://%s/store"):format(one.folder)
    for _, name in ipairs { "a", "b" } do
      one:start(name, words)
      assert.equal(0, one:status(name), one:all())
    end
    assert.equal(1, one:count "runs\n", one:all())
    assert.matches("the job has ended well\n$", one:read("a", "err"))
    assert.matches("the job has ended already, nothing was run: give another one its own "
      .. "%-%-rdzv_id, or wait a minute\n$", one:read("b", "err"))
  end)

  it("ends the ranks at once at a second Ctrl-C", function()
    local one <close> = launchers.new [[
      function step() mark "there" while true do pcall(nap, 0.1) end end
      train()
    ]]
    one:start("a", "--nproc_per_node 2")
    assert.is_true(one:wait_for "there", one:all())
    one:signal("a", "INT")
    assert.is_true(one:wait_text("a", "err", "SIGINT: the ranks save and stop"), one:all())
    os.execute "sleep 0.3"
    one:signal("a", "INT")
    assert.equal(130, one:status("a", 10), one:all())
    assert.is_truthy(one:wait_gone(5), one:all())
  end)

  it("ends ranks that do not stop within the grace", function()
    local one <close> = launchers.new [[
      function step() mark "there" while true do pcall(nap, 0.1) end end
      train()
    ]]
    one:start("a", "--nproc_per_node 2 --grace 0.5")
    assert.is_true(one:wait_for "there", one:all())
    one:signal("a", "TERM")
    assert.equal(143, one:status("a", 20), one:all())
    assert.is_truthy(one:wait_gone(5), one:all())
  end)

  it("leaves nothing behind when the launcher is killed", function()
    local one <close> = launchers.new [[
      function step(k) if k == 4 then mark "there" end nap(0.05) end
      train {max_epochs = 1000}
    ]]
    one:start("a", "--nproc_per_node 2")
    assert.is_true(one:wait_for "there", one:all())
    one:signal("a", "KILL")
    assert.is_truthy(one:wait_gone(30), one:all())
  end)
end)
