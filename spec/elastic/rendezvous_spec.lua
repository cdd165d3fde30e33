-- spec/elastic/rendezvous_spec.lua: launchers that meet over a store, in rounds.
-- tags: slow
local c = require "ltrain.c"
local etcd = require "spec.elastic.etcd"
local MemoryStore = require "ltrain.elastic.stores.memory"
local Rendezvous = require "ltrain.elastic.Rendezvous"

-- Launchers over a memory store, with a clock that goes on when somebody waits.
local function hosts_of(options)
  local time = 0
  local function now() return time end
  local store <const> = MemoryStore(now)
  local job <const> = { store = store }
  function job.pass(seconds) time = time + seconds end
  function job.host(id, more)
    local o <const> = { store = store:share(), job = "job", now = now, settle = 0,
      host = { id = id, name = id, address = id .. ".net", port = 29500, slots = 2 } }
    for name, value in pairs(options) do o[name] = value end
    for name, value in pairs(more or {}) do o[name] = value end
    function o.store.wait(_, _, seconds)
      time = time + seconds
      return true
    end
    return Rendezvous(o)
  end
  return job
end

-- What each of them gets of join, when they wait beside each other; nil of one that still waits
-- after `most` attempts of each.
local function join(hosts, most)
  local results <const>, threads = {}, {}
  for k, host in ipairs(hosts) do
    threads[k] = coroutine.create(function()
      results[k] = host:join(function(text)
        coroutine.yield(text)
        return false
      end)
    end)
  end
  for _ = 1, most or 100 do
    for _, thread in ipairs(threads) do
      if coroutine.status(thread) == "suspended" then
        local ok, message = coroutine.resume(thread)
        assert(ok, message)
      end
    end
  end
  return results
end

-- Polls them until each has a reason: the last one's reason and kind.
local function over(...)
  local reason, kind
  for _, host in ipairs { ... } do
    local deadline <const> = c.runtime.clock() + 60
    repeat
      reason, kind = host:poll()
      if not reason then c.runtime.sleep(0.01) end
    until reason or c.runtime.clock() > deadline
    assert.is_truthy(reason)
  end
  return reason, kind
end

describe("a rendezvous", function()
  it("numbers hosts in the order in which they came, and their ranks", function()
    local job <const> = hosts_of { min = 2, max = 2 }
    local a <const>, three = job.host "a", { id = "b", name = "b", address = "x", port = 29501,
      slots = 3 }
    local b <const> = job.host("b", { host = three })
    assert.is_nil(join({ b }, 3)[1])
    local of_b, of_a = table.unpack(join { b, a })
    assert.same({ 0, 1, 0, 5, "", 0 }, { of_b.number, of_b.index, of_b.first_rank,
      of_b.world_size, of_b.reason, of_b.restarts })
    assert.same({ 0, 2, 3, 5 }, { of_a.number, of_a.index, of_a.first_rank, of_a.world_size })
    assert.same({ "x", 29501, { "b", "a" } }, { of_a.address, of_a.port, of_a.names })
    assert.is_nil((a:poll()))
  end)

  it("goes on without a host whose lease has expired, and does not count that", function()
    local job <const> = hosts_of { min = 2, max = 3, max_restarts = 0 }
    local a <const>, b, d = job.host "a", job.host "b", job.host "d"
    assert.equal(3, join { a, b, d }[1].hosts)
    for _ = 1, 20 do
      job.pass(0.5)
      for _, host in ipairs { a, d } do
        local reason <const>, kind = host:poll()
        if reason then assert.same({ "host b has gone", "gone" }, { reason, kind }) end
      end
    end
    local of_a, of_d = table.unpack(join { a, d })
    assert.same({ 1, 1, 4, "host b has gone", 0 }, { of_a.number, of_a.index, of_a.world_size,
      of_a.reason, of_a.restarts })
    assert.equal(2, of_d.index)
    assert.same({ "the lease of this host has expired", "lost" }, { b:poll() })
    assert.is_nil(join({ b }, 2)[1])
    assert.same({ "host b has come", "come" }, { over(a, d) })
  end)

  it("lets a host in that comes late, behind the others", function()
    local job <const> = hosts_of { min = 1, max = 3 }
    local b <const>, a = job.host "b", job.host "a"
    assert.equal(2, join { b }[1].world_size)
    assert.is_nil(join({ a }, 3)[1])
    assert.same({ "host a has come", "come" }, { over(b) })
    local of_b, of_a = table.unpack(join { b, a })
    assert.same({ 1, 1, 4, "host a has come" }, { of_b.number, of_b.index, of_b.world_size,
      of_b.reason })
    assert.equal(2, of_a.index)
  end)

  it("keeps hosts beyond the most as a reserve", function()
    local job <const> = hosts_of { min = 2, max = 2 }
    local a <const>, b, d = job.host "a", job.host "b", job.host "d"
    local of_a <const>, of_b, of_d = table.unpack(join({ a, b, d }, 5), 1, 3)
    assert.same({ 2, 2 }, { of_a.hosts, of_b.hosts })
    assert.is_nil(of_d)
    assert.is_true(b:leave "maintenance")
    assert.same({ "host b leaves: maintenance", "left" }, { over(a) })
    assert.equal("d", join({ a, d })[1].names[2])
  end)

  it("counts failures of ranks against max_restarts", function()
    local job <const> = hosts_of { min = 2, max = 2, max_restarts = 1 }
    local a <const>, b = job.host "a", job.host "b"
    join { a, b }
    b:failed { rank = 2, step = 10, message = "out of memory \xff" }
    a:failed { rank = 0, step = 10, message = "rank 2 has gone" }
    assert.same({ "rank 2 on host b failed: out of memory \\255", "failed" }, { over(a, b) })
    local round <const> = join { a, b }[1]
    assert.same({ 1, 1, "rank 2 on host b failed: out of memory \\255" },
      { round.number, round.restarts, round.reason })
    a:failed { rank = 1, step = 11, message = "nan" }
    over(b)
    for _, result in ipairs(join { a, b }) do
      assert.same({ ended = true, status = 1,
        message = "rank 1 on host a failed: nan (after 1 restart)" }, result)
    end
  end)

  it("ends a job in which the same rank fails the same way at the same step", function()
    local job <const> = hosts_of { min = 1, max = 1, max_restarts = 9 }
    local a <const> = job.host "a"
    for k = 1, 2 do
      assert.equal(k - 1, join({ a })[1].restarts)
      a:failed { rank = 1, step = 10 * k, message = "nan" }
    end
    assert.equal(2, join({ a })[1].number)
    a:failed { rank = 1, step = 20, message = "nan" }
    assert.equal("rank 1 on host a failed: nan: for the second time at step 20",
      join({ a })[1].message)
  end)

  it("does not count failures of ranks that lost a host", function()
    local job <const> = hosts_of { min = 1, max = 2, max_restarts = 0, settle = 0.5 }
    local a <const>, b = job.host "a", job.host "b"
    assert.equal(2, join({ a, b })[1].hosts)
    a:failed { rank = 0, step = 3, message = "rank 2 has gone" } -- before b's lease expires
    local round <const> = join({ a }, 300)[1]
    assert.same({ 1, 0, 1 }, { round.number, round.restarts, round.hosts })
    assert.is_truthy(b.round)
  end)

  it("ends when the ranks of all hosts have ended well, and stays so", function()
    local job <const> = hosts_of { min = 2, max = 2 }
    local a <const>, b = job.host "a", job.host "b"
    join { a, b }
    a:done()
    assert.is_nil((a:poll()))
    b:done()
    assert.same({ "ended", "ended" }, { over(a, b) })
    for _, result in ipairs(join { a, b }) do
      assert.same({ ended = true, status = 0, message = "" }, result)
    end
    local late <const> = join({ job.host "d" })[1]
    assert.is_true(late.ended)
    assert.matches("the job has ended already", late.message)
  end)

  it("refuses a second launcher of a host, and waits for one that comes back", function()
    local job <const> = hosts_of { min = 1, max = 2 }
    local first <const> = job.host "a"
    join { first }
    local second <const>, refused = job.host("a", { launch = "second" }), nil
    local thread <const> = coroutine.wrap(function()
      refused = second:join(coroutine.yield)
    end)
    for _ = 1, 200 do
      if not refused then thread() end
      assert.is_nil((first:poll()))
    end
    assert.equal(2, refused.status)
    assert.matches("a launcher of host a has joined the job already", refused.message)
    local third <const> = job.host("a", { launch = "third" }) -- while the first says nothing more
    local round <const> = join({ third }, 300)[1]
    assert.same({ { "a" }, 1 }, { round.names, round.number })
  end)

  it("refuses a host that was started with other bounds", function()
    local job <const> = hosts_of { min = 1, max = 2 }
    join { job.host "a" }
    local refused <const> = join({ job.host("b", { max = 4 }) })[1]
    assert.equal("host b was started with max = 4, the hosts that it would join with 2",
      refused.message)
  end)

  it("tells hosts of the same name apart", function()
    local job <const> = hosts_of { min = 2, max = 2 }
    local function twin(id)
      return job.host(id, { host = { id = id, name = "node", address = "x", slots = 1 } })
    end
    local a <const>, b = twin "node.1", twin "node.2"
    join { a, b }
    b:failed { rank = 1, message = "boom" }
    assert.equal("rank 1 on host node (node.2) failed: boom", (over(a)))
  end)

  it("gives up when it is asked to, and says what it waits for", function()
    local a <const>, text = hosts_of({ min = 2, max = 2 }).host "a", nil
    local count = 0
    assert.is_nil(a:join(function(what)
      text, count = what, count + 1
      return count == 5
    end))
    assert.equal("waits for hosts: 1 of at least 2", text)
    assert.is_true(a:leave "asked")
  end)

  it("stores the members of a large round in parts, and those of no earlier round", function()
    local job <const>, hosts = hosts_of { min = 100, max = 150, lease = 1e4, patience = 1e4 }, {}
    for k = 1, 150 do hosts[k] = job.host("host" .. k) end
    local function parts()
      local count, number = 0, nil
      for key in pairs(job.store:list "ltrain/job/members/") do
        local of <const> = tonumber(key:match "^ltrain/job/members/(%d+)%.")
        assert.is_true(number == nil or number == of)
        count, number = count + 1, of
      end
      return count, number
    end
    for k, round in ipairs(join(hosts)) do
      assert.same({ 0, k, 2 * (k - 1), 300 }, { round.number, round.index, round.first_rank,
        round.world_size })
    end
    assert.same({ 3, 0 }, { parts() })
    hosts[150]:failed { rank = 299, message = "boom" }
    assert.equal("rank 299 on host host150 failed: boom", (over(table.unpack(hosts))))
    assert.equal(300, join(hosts)[150].world_size)
    assert.same({ 3, 1 }, { parts() })
    for _, host in ipairs(hosts) do host:done() end
    assert.equal("ended", (over(table.unpack(hosts))))
    assert.equal(0, (parts()))
  end)

  it("goes on with larger numbers where the store has lost all, each host in its place", function()
    local job <const> = hosts_of { min = 2, max = 2 }
    local a <const>, b = job.host "a", job.host "b"
    join { b, a }
    local data <const> = job.store._data
    data.keys, data.leases = {}, {}
    job.pass(4)
    assert.equal("lost", (select(2, over(a, b))))
    local round <const> = join { a, b }[1]
    assert.same({ 1, { "b", "a" } }, { round.number, round.names })
  end)
end)

-- Over a real store: what the hosts get of join, each with its own client.
local function meet(open, min, n)
  local hosts <const> = {}
  for k = 1, n do
    hosts[k] = Rendezvous { store = open(), job = "job" .. min .. n, min = min, max = n, lease = 3,
      settle = 0.5, host = { id = "h" .. k, name = "h" .. k, address = "x", port = 1, slots = 1 } }
  end
  return hosts
end

describe("over etcd a rendezvous", function()
  local missing <const> = etcd.missing()

  it("survives that the server is killed and comes back #slow", function()
    if missing then return pending(missing) end
    local cluster <const> = etcd.start(1)
    local a <const>, b = table.unpack(meet(function() return cluster:open() end, 2, 2))
    assert.equal(2, join({ a, b }, 1000)[1].hosts)
    cluster:kill(1)
    for _ = 1, 20 do
      assert.is_nil((a:poll()))
      assert.is_nil((b:poll()))
      c.runtime.sleep(0.05)
    end
    cluster:start(1)
    cluster:open():close()
    b:failed { rank = 1, step = 1, message = "boom" }
    assert.equal("rank 1 on host h2 failed: boom", (over(b)))
    assert.equal("rank 1 on host h2 failed: boom", (over(a)))
    assert.same({ 1, 1 }, { join({ a, b }, 1000)[1].number, b.round.restarts })
    a:done()
    b:done()
    assert.equal("ended", (over(a)))
    cluster:stop()
  end)

  it("survives the leader of three servers #slow", function()
    if missing then return pending(missing) end
    if os.getenv "LT_EXHAUSTIVE" ~= "1" then return pending "with --exhaustive" end
    local cluster <const> = etcd.start(3)
    local a <const>, b = table.unpack(meet(function() return cluster:open() end, 1, 2))
    assert.is_truthy(join({ a, b }, 1000)[1])
    for k = 1, 3 do -- one of them leads
      cluster:kill(k)
      a:failed { rank = 0, step = k, message = "boom" }
      over(a)
      assert.equal(1, join({ a, b }, 1000)[1].index)
      cluster:start(k)
      cluster:open(k):close()
    end
    cluster:stop()
  end)
end)
