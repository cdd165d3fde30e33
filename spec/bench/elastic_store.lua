-- spec/bench/elastic_store.lua: how long thousands of launchers take to meet over one store.
--
--   ./dev bench elastic_store [HOSTS...]        (64 512 4096)
--
-- Some processes are all hosts, 512 each (a process may not have many more open files), each host
-- with connections of its own (etcd: two, one of them watches). The hosts of a process ask one
-- after the other, the processes at the same time: the times are those of all requests together, as
-- when the store is what limits. Beside them the processor time of the store, and how often a host
-- asks for what. Then a rank fails: the same hosts form the next round.
local c = require "ltrain.c"
local etcd = require "spec.elastic.etcd"
local EtcdStore = require "ltrain.elastic.stores.etcd"
local Rendezvous = require "ltrain.elastic.Rendezvous"
local stores = require "ltrain.elastic.stores"
local TcpStore = require "ltrain.elastic.stores.tcp"
local tree = require "ltrain.core.tree"

local PLAIN <const> = { plain = true }
local EACH <const> = 512 -- hosts of a process
local LINE <const> = 1 << 16
local SECONDS <const> = 600 -- of a measurement, at most
local NAP <const> = 0.01 -- between two looks at all hosts of a process
local PHASES <const> = { { "form", "first round" }, { "fail", "a failure is known to all" },
                         { "form", "second round" } }

local function encode(value) return c.io.json_encode(value, PLAIN) end

-- A process that is some of the hosts.

-- By kind of request: how many there were, and their seconds.
local counts = {}

-- Counts the calls of a method that asks the server once; kind_of(self, ...) names them.
local function count(class, name, kind_of)
  local method <const> = class[name]
  rawset(class, name, function(...)
    local began <const>, kind = c.runtime.clock(), kind_of(...)
    local results <const> = table.pack(method(...))
    local row <const> = counts[kind] or { n = 0, seconds = 0 }
    counts[kind] = row
    row.n, row.seconds = row.n + 1, row.seconds + c.runtime.clock() - began
    return table.unpack(results, 1, results.n)
  end)
end

-- The launchers of hosts `first` to `last` of n, whose waits end at once.
local function hosts_of(url, first, last, n)
  local hosts <const> = {}
  for k = first, last do
    local store <const> = assert(stores.open(url))
    local wait <const> = store.wait
    function store.wait(self, prefix) return wait(self, prefix, 0) end
    local name <const> = ("node%04d"):format(k)
    hosts[#hosts + 1] = Rendezvous { store = store, job = "bench" .. n, min = n, max = n,
      lease = 600, patience = 600,
      host = { id = name, name = name, address = "10.0.0." .. k, port = 29500, slots = 8 } }
  end
  return hosts
end

local phases <const> = {}

-- Until all of them are in a round.
function phases.form(hosts)
  local threads <const>, left = {}, #hosts
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
    c.runtime.sleep(NAP)
  end
end

-- Until all of them know that a rank of the last one of all hosts has failed.
function phases.fail(hosts, is_last)
  if is_last then hosts[#hosts]:failed { rank = 0, step = 1, message = "boom" } end
  local left = table.move(hosts, 1, #hosts, 1, {})
  while #left > 0 do
    local others <const> = {}
    for _, host in ipairs(left) do
      if not host:poll() then others[#others + 1] = host end
    end
    left = others
    c.runtime.sleep(NAP)
  end
end

-- Does what the process that measures asks for, until it has gone.
local function be_hosts(port, url, first, last, n)
  count(TcpStore, "_ask", function(_, request) return request.op end)
  count(EtcdStore, "_post", function(_, path) return path:sub(#"/v3/" + 1) end)
  count(EtcdStore, "_begin_watch", function() return "watch" end)
  local hosts <const> = hosts_of(url, first, last, n)
  local connection <const> = assert(c.net.connect("127.0.0.1", port, 10))
  connection:send(encode {}, 10)
  while true do
    local phase <const> = connection:receive(SECONDS)
    if not phase then return end
    counts = {}
    phases[phase](hosts, last == n)
    connection:send(encode(counts), 10)
  end
end

-- The process that measures.

-- Seconds on the processor of a process.
local function processor(pid)
  local file <close> = assert(io.open(("/proc/%d/stat"):format(pid)))
  local user <const>, system = file:read "a":match("%) " .. ("%S+ "):rep(11) .. "(%d+) (%d+)")
  return (tonumber(user) + tonumber(system)) / 100
end

-- The answers of `left` processes, and who they are.
local function answers(server, left)
  local clients <const>, list, deadline = {}, {}, c.runtime.clock() + SECONDS
  while #list < left do
    local client <const>, line = server:wait(1)
    assert(c.runtime.clock() < deadline and not (client and not line), "a process has ended")
    if line then clients[#clients + 1], list[#list + 1] = client, c.io.json_decode(line, PLAIN) end
  end
  return clients, list
end

-- "kv/txn 1.0 of 2.10 ms, ...": requests of a host, by kind; and their number.
local function kinds(list, n)
  local all <const>, parts, requests = {}, {}, 0
  for _, of_process in ipairs(list) do
    for kind, row in next, of_process do
      all[kind] = all[kind] or { n = 0, seconds = 0 }
      all[kind].n, all[kind].seconds = all[kind].n + row.n, all[kind].seconds + row.seconds
    end
  end
  for kind, row in tree.pairs(all) do
    requests = requests + row.n
    parts[#parts + 1] = ("%s %.2f of %.2f ms"):format(kind, row.n / n, row.seconds / row.n * 1e3)
  end
  return table.concat(parts, ", "), requests
end

local function measure(name, url, pid, n)
  local server <const>, pids = assert(c.net.serve("127.0.0.1", 0, LINE, LINE)), {}
  for first = 1, n, EACH do
    local words <const> = { os.getenv "LTRAIN", "spec/bench/elastic_store.lua", "hosts",
      server:port(), url, first, math.min(first + EACH - 1, n), n }
    for k, word in ipairs(words) do words[k] = tostring(word) end
    pids[#pids + 1] = assert(c.runtime.process.start(words))
  end
  local clients = answers(server, #pids)
  for _, phase in ipairs(PHASES) do
    local began <const>, cpu = c.runtime.clock(), processor(pid)
    for _, client in ipairs(clients) do server:send(client, phase[1]) end
    local next_clients <const>, list = answers(server, #pids)
    clients = next_clients
    local seconds <const> = c.runtime.clock() - began
    local by_kind <const>, requests = kinds(list, n)
    print(("%-6s %5d hosts  %-28s %8.2f s  of it %6.2f s of the store's processor  %7d requests  "
      .. "%5.1f a host\n       %s"):format(name, n, phase[2], seconds, processor(pid) - cpu,
      requests, requests / n, by_kind))
  end
  server:close()
  while #pids > 0 do
    local ended <const> = c.runtime.process.wait_any(pids, SECONDS)
    for k, one in ipairs(pids) do
      if one == ended then table.remove(pids, k) end
    end
  end
end

local function compare(n)
  local url <const> = ("tcp://127.0.0.1:%d/bench"):format(etcd.free_port())
  local store <const> = assert(stores.open(url))
  measure("tcp", url, store._pid, n)
  store:close()
  if etcd.missing() then return print(etcd.missing()) end
  local cluster <const> = etcd.start(1)
  cluster:open():close()
  measure("etcd", cluster:url(), cluster.servers[1].pid, n)
  cluster:stop()
end

if arg[1] == "hosts" then
  be_hosts(math.tointeger(tonumber(arg[2])), arg[3], math.tointeger(tonumber(arg[4])),
    math.tointeger(tonumber(arg[5])), math.tointeger(tonumber(arg[6])))
else
  for _, n in ipairs(#arg > 0 and arg or { 64, 512, 4096 }) do
    compare(math.tointeger(tonumber(n)))
  end
end
