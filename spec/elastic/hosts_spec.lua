-- spec/elastic/hosts_spec.lua: `ltrain launch` on several hosts: launchers on this machine that
-- meet in a folder or at an address, and on two hosts that are network namespaces.
-- tags: half, slow, waits
local c = require "ltrain.c"
local hosts = require "spec.dist.two_hosts.hosts"
local launchers = require "spec.elastic.launchers"

local missing = launchers.missing()

-- Trains slowly, so that there is time for events, until the file "end" is there.
local SCRIPT <const> = [[
  local calls = 0
  function step(_, trainer)
    calls = calls + 1
    if calls == 4 then mark("running." .. world.incarnation) end
    if exists("kill." .. lt.dist.rank()) and os.remove("kill." .. lt.dist.rank()) then kill() end
    nap(0.04)
    trainer.should_stop = exists "end"
  end
  train {max_epochs = 10000, callbacks = {lt.callbacks.ModelCheckpoint {every_n_train_steps = 3}}}
]]

local function words(one, name, more)
  return ("--nnodes 1:3 --nproc_per_node 1 --host_id %s --last_call 1 --rdzv file://%s/store %s")
    :format(name, one.folder, more or "")
end

local function touch(one, name) os.execute(("touch '%s/%s'"):format(one.folder, name)) end

-- Launchers a and b of which the first round runs.
local function two()
  local one = launchers.new(SCRIPT)
  for _, name in ipairs { "a", "b" } do one:start(name, words(one, name)) end
  assert.is_true(one:wait_for "running.0", one:all())
  assert.equal(1, one:count "start 0 of 2 ranks", one:all())
  return one
end

local function ends_well(one, names)
  touch(one, "end")
  for _, name in ipairs(names) do assert.equal(0, one:status(name), one:all()) end
  assert.is_truthy(one:wait_gone(10), one:all())
end

describe("launchers of several hosts", function()
  before_each(function() if missing then pending(missing) end end)

  it("start again together when a rank is killed; the failure is named on all", function()
    local one <close> = two()
    touch(one, "kill.1")
    assert.is_true(one:wait_for "running.1", one:all())
    assert.equal(1, one:count "start 1 of 2 ranks: from step", one:all())
    local named = "ltrain: launch: rank 1 on host %a failed[^\n]*was ended by SIGKILL"
    for _, name in ipairs { "a", "b" } do assert.matches(named, one:read(name, "err")) end
    ends_well(one, { "a", "b" })
    assert.matches("after 1 restart; first failure: rank 1 on host", one:read("a", "err"), 1, true)
  end)

  it("go on without a host whose launcher is killed, and let it in again", function()
    local one <close> = two()
    one:signal("b", "KILL")
    assert.is_true(one:wait_text("a", "out", "start 1 of 1 ranks"), one:all())
    assert.matches("start 1 of 1 ranks: from step %d+: host b has gone\n", one:read("a", "out"))
    one:start("b", words(one, "b"))
    assert.is_true(one:wait_for "running.2", one:all())
    assert.equal(1, one:count "start 2 of 2 ranks", one:all())
    assert.equal(1, one:count ": host b has come\n", one:all())
    ends_well(one, { "a", "b" })
    assert.not_matches("restart", one:read("a", "err"), 1, true)
  end)

  it("go on without a host that gets SIGTERM", function()
    local one <close> = two()
    one:signal("a", "TERM")
    assert.equal(143, one:status "a", one:all())
    assert.is_true(one:wait_for "running.1", one:all())
    assert.matches("start 1 of 1 ranks: from step %d+: host a leaves: SIGTERM\n",
      one:read("b", "out"))
    ends_well(one, { "b" })
  end)

  it("let a third one in at a batch's end, without losing a step", function()
    local one <close> = two()
    one:start("c", words(one, "c"))
    assert.is_true(one:wait_for "running.1", one:all())
    assert.equal(1, one:count "start 1 of 3 ranks", one:all())
    ends_well(one, { "a", "b", "c" })
  end)

  it("end with the message of a crash loop, on all hosts", function()
    local one <close> = launchers.new [[
      function step(k) if k == 2 and lt.dist.rank() == 1 then error "a number is wrong" end end
      train()
    ]]
    for _, name in ipairs { "a", "b" } do one:start(name, words(one, name, "--nnodes 2")) end
    for _, name in ipairs { "a", "b" } do
      assert.equal(1, one:status(name), one:all())
      assert.matches("the job has failed: rank 1 on host %a failed: [^\n]*a number is wrong",
        one:read(name, "err"))
    end
  end)

  it("name a host that does not exist, at once", function()
    local one <close> = launchers.new ""
    one:start("a", "--rdzv tcp://nowhere.invalid:29400")
    assert.equal(2, one:status("a", 20), one:all())
    assert.matches("ltrain: launch: %-%-rdzv: nowhere.invalid: no such host [^\n]*: write the name "
      .. "or the address of a host that all hosts reach\n$", one:read("a", "err"))
  end)

  it("say once that nobody answers, and do not wait for ever", function()
    local one <close> = launchers.new ""
    one:start("a", "--rdzv etcd://127.0.0.1:9 --join_timeout 4")
    assert.equal(1, one:status("a", 40), one:all())
    assert.equal("ltrain: launch: etcd at 127.0.0.1:9 does not answer: does it run there, and "
      .. "is this its port?\nltrain: launch: no round within 4 s (--join_timeout)\n",
      one:read("a", "err"))
  end)

  it("do not wait for a port at which another program listens", function()
    local server <const> = assert(c.net.serve("127.0.0.1", 0, 1024, 1024))
    local one <close> = launchers.new ""
    local answers <const> = c.runtime.clock() + 30
    one:start("a", ("--rdzv tcp://127.0.0.1:%d"):format(server:port()))
    while one:read("a", "status") == "" and c.runtime.clock() < answers do
      local client <const>, line = server:wait(0.1)
      if line then server:send(client, "SSH-2.0-OpenSSH_9.2") end
    end
    assert.equal(2, one:status "a", one:all())
    assert.equal(("ltrain: launch: the store at 127.0.0.1:%d is another program's: is this the "
      .. "port of a launcher?\n"):format(server:port()), one:read("a", "err"))
    server:close()
  end)

  it("wait for hosts no longer than --join_timeout, and say what for", function()
    local one <close> = launchers.new "error 'no rank is started'"
    one:start("a", words(one, "a", "--nnodes 2 --join_timeout 4"))
    assert.equal(1, one:status "a", one:all())
    assert.matches("ltrain: launch: waits for hosts: 1 of at least 2\n", one:read("a", "err"), 1,
      true)
    assert.matches("no round within 4 s (--join_timeout)", one:read("a", "err"), 1, true)
  end)
end)

describe("launchers on two hosts", function()
  before_each(function() if missing then pending(missing) end end)

  it("meet at an address, and go on when one is lost", function()
    local reason = hosts.missing()
    if reason then return pending(reason) end
    local net <close> = hosts.up()
    local one <close> = launchers.new(SCRIPT)
    local function start(name, host)
      one:start(name, "--nnodes 1:2 --nproc_per_node 1 --last_call 3 --rdzv tcp://lta:29400/job",
        { on = net:on(host), env = "UCX_TLS=tcp UCX_NET_DEVICES=eth0" })
    end
    start("a", "lta")
    start("b", "ltb")
    assert.is_true(one:wait_for "running.0", one:all())
    assert.equal(1, one:count "start 0 of 2 ranks", one:all())
    net:cut()
    assert.is_true(one:wait_text("a", "out", "start 1 of 1 ranks"), one:all())
    touch(one, "end")
    assert.equal(0, one:status "a", one:all())
  end)
end)
