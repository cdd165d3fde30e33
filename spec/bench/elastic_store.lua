-- spec/bench/elastic_store.lua: how long thousands of launchers take to meet over one store.
--
--   ./dev bench elastic_store [HOSTS...]        (64 512 4096)
--
-- One process is all hosts, each with a connection of its own (etcd: two, one of them watches), and
-- asks for one after the other: the times are those of all requests together, as when the store is
-- what limits. Of it the processor time of this process, the rest is the store's (and that of other
-- programs of the machine). Then a rank fails: the same hosts form the next round.
local c = require "ltrain.c"
local etcd = require "spec.elastic.etcd"
local EtcdStore = require "ltrain.elastic.stores.etcd"
local Rendezvous = require "ltrain.elastic.Rendezvous"
local stores = require "ltrain.elastic.stores"
local TcpStore = require "ltrain.elastic.stores.tcp"

local counts <const> = { requests = 0 }

-- Counts the calls of a method that asks the server once.
local function count(class, name)
  local method <const> = class[name]
  rawset(class, name, function(...)
    counts.requests = counts.requests + 1
    return method(...)
  end)
end

-- The launchers of n hosts, whose waits end at once.
local function hosts_of(open, n)
  local hosts <const> = {}
  for k = 1, n do
    local store <const> = open()
    local wait <const> = store.wait
    function store.wait(self, prefix) return wait(self, prefix, 0) end
    local name <const> = ("node%04d"):format(k)
    hosts[k] = Rendezvous { store = store, job = "bench" .. n, min = n, max = n, lease = 600,
      patience = 600,
      host = { id = name, name = name, address = "10.0.0." .. k, port = 29500, slots = 8 } }
  end
  return hosts
end

-- Begins a measurement: a function that returns its seconds, those of this process's processor, and
-- the requests.
local function start()
  local began <const>, cpu, before = c.runtime.clock(), os.clock(), counts.requests
  return function() return c.runtime.clock() - began, os.clock() - cpu, counts.requests - before end
end

-- What is measured until all of them are in a round.
local function form(hosts)
  local lap <const>, left = start(), #hosts
  local threads <const> = {}
  for k, host in ipairs(hosts) do
    threads[k] = coroutine.create(function()
      assert(host:join(coroutine.yield).number)
      left = left - 1
    end)
  end
  while left > 0 do
    for _, thread in ipairs(threads) do
      if coroutine.status(thread) == "suspended" then assert(coroutine.resume(thread)) end
    end
  end
  return lap()
end

-- The same until all of them know that a rank of the last one has failed.
local function fail(hosts)
  local lap <const> = start()
  hosts[#hosts]:failed { rank = 0, step = 1, message = "boom" }
  for _, host in ipairs(hosts) do
    repeat until host:poll()
  end
  return lap()
end

local function measure(name, open, n)
  local hosts <const> = hosts_of(open, n)
  local function report(what, seconds, cpu, requests)
    print(("%-6s %5d hosts  %-28s %8.2f s  of it %6.2f s here  %7d requests  %6.1f a host  "
      .. "%6.0f us each"):format(name, n, what, seconds, cpu, requests, requests / n,
      seconds / requests * 1e6))
  end
  report("first round", form(hosts))
  report("a failure is known to all", fail(hosts))
  report("second round", form(hosts))
  for k = #hosts, 1, -1 do hosts[k].store:close() end
end

count(TcpStore, "_ask")
count(EtcdStore, "_post")
c.net.serve("127.0.0.1", 0, 1, 1):close() -- as many descriptors as there may be
for _, n in ipairs(#arg > 0 and arg or { 64, 512, 4096 }) do
  n = math.tointeger(tonumber(n))
  local url <const> = ("tcp://127.0.0.1:%d/bench"):format(etcd.free_port())
  measure("tcp", function() return assert(stores.open(url)) end, n)
  if etcd.missing() then
    print(etcd.missing())
  else
    local cluster <const> = etcd.start(1)
    cluster:open():close()
    measure("etcd", function() return assert(stores.open(cluster:url())) end, n)
    cluster:stop()
  end
end
