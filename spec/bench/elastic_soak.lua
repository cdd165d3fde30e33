-- spec/bench/elastic_soak.lua: random events that happen to a training on several hosts, and what
-- each costs.
--
--   ./dev bench elastic_soak [EVENTS [SEED [HOSTS]]]        (100 events, 3 hosts)
--
-- Hosts are network namespaces where these are permitted, else launchers with names of their own;
-- they meet over three servers of etcd. A fit with `deterministic = "world"` trains while ranks,
-- launchers and etcd's leader are killed, hosts leave, are cut off or stand still, and snapshots
-- get no memory. At its end the weights must be bit for bit those of an undisturbed run on one
-- rank, the samples of each step too, and no process may be left. Printed is, by event, the time
-- that was lost: from it until all hosts train again, less that of the steps that were new then. Of
-- events that overlap it is one time. The same seed draws the same events again; what they hit in
-- the training differs.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local etcd = require "spec.elastic.etcd"
local hosts = require "spec.dist.two_hosts.hosts"
local job = require "spec.dist.job"
local launchers = require "spec.elastic.launchers"
local namespaces = require "spec.dist.namespaces"

local EVENTS <const> = math.tointeger(tonumber(arg[1])) or 100
local SEED <const> = math.tointeger(tonumber(arg[2])) or c.runtime.time() // 1 | 0
local HOSTS <const> = math.tointeger(tonumber(arg[3])) or 3
local HUB <const> = hosts.absolute "spec/elastic/hub.sh"
local LTRAIN <const> = hosts.absolute(os.getenv "LTRAIN" or "build/ltrain")
local FIT <const> = hosts.absolute "spec/bench/elastic_soak_fit.lua"
local SLOTS <const> = { 2, 1, 1, 1 } -- ranks by host
local PATIENCE <const> = 180 -- seconds until a training that makes no step is a failure
local LIMIT <const> = 60 + 60 * EVENTS -- seconds, of all
local SLEEP <const> = 0.03 -- seconds that a step takes besides
local NOW <const> = c.runtime.clock

local random_state = SEED

-- A number in [0, 1).
local function random()
  random_state = random_state * 6364136223846793005 + 1442695040888963407
  return (random_state >> 11) / (1 << 53)
end

local Soak = {}
Soak.__index = Soak

function Soak:hub(...)
  local words <const> = { "env", "LIMIT=" .. LIMIT, HUB, ... }
  local status <const>, text = c.runtime.process.capture(words, 30)
  assert(status == 0, text)
end

function Soak:on(name) return self.net and ("%s on %s %s"):format(HUB, self.net, name) or "" end

-- Hosts and what happens to them.

function Soak:start_host(host)
  host.life, host.away = host.life + 1, false
  local env <const> = ("LT_HOST=%s.%d SLEEP=%g LT_NUM_THREADS=1 OMP_NUM_THREADS=1 %s"):format(
    host.name, host.life, SLEEP, self.net and "UCX_TLS=tcp UCX_NET_DEVICES=eth0" or "")
  self.launchers:start(host.name, ("--nnodes 1:%d --nproc_per_node %d --host_id %s --last_call 1 "
    .. "--grace 20 --max_restarts 100000 --rdzv %s"):format(HOSTS, host.slots, host.name,
    self.cluster:url()), { env = env, on = self:on(host.name), limit = LIMIT })
end

-- The processes of one life of a host; those of ranks only.
local function processes_of(host, life, ranks)
  local list <const> = {}
  local pipe <close> = assert(io.popen(
    ("grep -lsaz '^LT_HOST=%s\\.%d$' /proc/[0-9]*/environ"):format(host.name, life)))
  for path in pipe:lines() do
    local file <close> = io.open((path:gsub("environ", "cmdline")))
    local words <const> = (file and file:read "a" or ""):gsub("\0", " ")
    local is_rank <const> = words:find " run [^ ]*script.lua" and not words:find "^sh "
    if is_rank or not ranks and words ~= "" then list[#list + 1] = path:match "%d+" end
  end
  return list
end

local function signal(name, pids)
  if #pids == 0 then return end
  os.execute(("kill -%s %s 2>/dev/null"):format(name, table.concat(pids, " ")))
end

function Soak:launcher_of(host) return { self.launchers:read(host.name, "pid"):match "%d+" } end

function Soak:later(seconds, action)
  table.insert(self.waiting, { due = NOW() + seconds, action = action })
end

-- Processes of a life that is over, which must go by themselves.
function Soak:expect_gone(host)
  table.insert(self.lives, { host = host, life = host.life, since = NOW() })
end

function Soak:away(host, seconds, action)
  host.away = true
  self:later(seconds, action or function()
    if self.launchers:status(host.name, 60) == nil then
      self:fail(("host %s: the launcher has not ended"):format(host.name))
    end
    self:start_host(host)
  end)
end

local function stand_still(self, host, pids, seconds)
  signal("STOP", pids)
  self:away(host, seconds, function()
    signal("CONT", pids)
    host.away = false
  end)
end

-- What can happen: act(soak, host, draw) with a number in [0, 1); takes: whether the host may be
-- lost by it, so that another one must be there; net: whether namespaces are needed.
local events <const> = {
  { name = "rank killed", weight = 4, act = function(_, host, draw)
    local pids <const> = processes_of(host, host.life, true)
    signal("KILL", { pids[1 + (draw * #pids // 1 | 0)] })
  end },
  { name = "launcher killed", weight = 3, takes = true, act = function(self, host, draw)
    signal("KILL", self:launcher_of(host))
    self:expect_gone(host)
    self:away(host, 1 + 8 * draw)
  end },
  { name = "host gone (all killed)", weight = 3, takes = true, act = function(self, host, draw)
    signal("KILL", processes_of(host, host.life))
    self:expect_gone(host)
    self:away(host, 1 + 8 * draw)
  end },
  { name = "host leaves (SIGTERM)", weight = 3, takes = true, act = function(self, host, draw)
    signal("TERM", self:launcher_of(host))
    self:expect_gone(host)
    self:away(host, 2 + 4 * draw)
  end },
  { name = "etcd's leader killed", weight = 2, act = function(self, _, draw)
    local leader <const> = self:etcd_leader()
    if not leader then return end
    self.cluster:kill(leader)
    self:later(1 + 4 * draw, function() self.cluster:start(leader) end)
  end },
  { name = "rank stands still", weight = 2, act = function(self, host, draw)
    local pids <const> = processes_of(host, host.life, true)
    stand_still(self, host, { pids[1] }, 0.2 + 3 * draw)
  end },
  { name = "launcher stands still", weight = 2, takes = true, act = function(self, host, draw)
    stand_still(self, host, self:launcher_of(host), 1 + 9 * draw)
  end },
  { name = "host stands still", weight = 2, takes = true, act = function(self, host, draw)
    stand_still(self, host, processes_of(host, host.life), 1 + 9 * draw)
  end },
  { name = "network cut", weight = 3, takes = true, net = true, act = function(self, host, draw)
    self:hub("cut", self.net, host.name)
    self:away(host, 1 + 9 * draw, function()
      self:hub("heal", self.net, host.name)
      host.away = false
    end)
  end },
  { name = "no memory for snapshots", weight = 2, act = function(self, host, draw)
    for _, pid in ipairs(processes_of(host, host.life, true)) do
      os.execute(("prlimit --pid %s --fsize=5000:unlimited 2>/dev/null"):format(pid))
    end
    self:later(1 + 3 * draw, function()
      for _, pid in ipairs(processes_of(host, host.life, true)) do
        os.execute(("prlimit --pid %s --fsize=unlimited:unlimited 2>/dev/null"):format(pid))
      end
    end)
  end },
}

-- The number of etcd's leader; nil while there is none.
function Soak:etcd_leader()
  local code <const> = [[
    local store = require "ltrain.elastic.stores".open(%q)
    local a = store:_call("/v3/maintenance/status", {})
    print(a and a.header.member_id == a.leader)]]
  for k, server in ipairs(self.cluster.servers) do
    local words <const> = {}
    for word in self:on "hub":gmatch "%S+" do words[#words + 1] = word end
    table.move({ LTRAIN, "-e", code:format(self.cluster:url(k)) }, 1, 3, #words + 1, words)
    local _, text = c.runtime.process.capture(words, 30)
    if server.pid and text:find "^true" then return k end
  end
end

-- Progress.

-- A step is complete at `time`.
local function note(self, time, step, ranks)
  self.last = { step = step, ranks = ranks }
  if step <= self.most then return end
  self.usual = self.usual + 0.02 * (math.min(time - self.time, 4 * SLEEP) - self.usual)
  self.most, self.time = step, time
end

-- What happened since all hosts trained is over.
local function settle(self)
  local first <const> = self.open[1]
  if not first then return end
  local lost <const> = self.time - first.time - (self.most - first.step) * self.usual
  first.seconds = math.max(0, lost)
  if #self.open > 1 then first.name = "several at once" end
  self.all[#self.all + 1], self.open = first, {}
end

-- Reads the steps that have been written since the last look: rounds begin some steps before those
-- that were complete.
function Soak:look()
  for k = math.max(0, self.most // 50 - 4), self.most // 50 + 1 do
    local file <close> = io.open(("%s/steps.%d"):format(self.launchers.folder, k))
    if file then file:seek("set", self.read[k] or 0) end
    for line in file and file:lines "L" or function() end do
      local time, step, ranks = line:match "^(%S+) (%d+) %d+ (%d+)\n"
      if not time then break end -- the rest of it comes
      self.read[k] = (self.read[k] or 0) + #line
      note(self, tonumber(time), math.tointeger(tonumber(step)), tonumber(ranks))
    end
  end
end

function Soak:fail(text)
  io.stdout:write(self.launchers:all():sub(-20000), "\n")
  error(("%s (seed %d, event %d)"):format(text, SEED, self.count or 0), 0)
end

-- Does what is due, and looks for processes that should have gone.
function Soak:tick()
  self:look()
  for k = #self.waiting, 1, -1 do
    local one <const> = self.waiting[k]
    if NOW() >= one.due then
      table.remove(self.waiting, k)
      one.action()
    end
  end
  for k = #self.lives, 1, -1 do
    local one <const> = self.lives[k]
    if NOW() - one.since > 45 then
      table.remove(self.lives, k)
      local left <const> = processes_of(one.host, one.life)
      self.orphans = self.orphans + #left
      if #left > 0 then
        os.execute("ps -o pid,ppid,stat,etime,args -p " .. table.concat(left, ","))
      end
    end
  end
  job.sleep(0.05)
end

function Soak:wait(condition, what)
  local deadline <const> = NOW() + PATIENCE
  while not condition() do
    if NOW() > deadline then self:fail("after " .. PATIENCE .. " s: " .. what) end
    self:tick()
  end
end

-- All hosts are there and train.
function Soak:steady()
  local ranks = 0
  for _, host in ipairs(self.hosts) do ranks = ranks + host.slots end
  self:wait(function() return #self.waiting == 0 end, "a host does not come back")
  local from <const> = self.most
  self:wait(function() return self.most >= from + 5 and self.last.ranks == ranks end,
    "the training does not go on on all hosts")
  settle(self)
end

-- Events.

local function pick()
  local sum, at = 0, random()
  for _, event in ipairs(events) do sum = sum + event.weight end
  for _, event in ipairs(events) do
    at = at - event.weight / sum
    if at < 0 then return event end
  end
  return events[1]
end

function Soak:happen(k)
  local event = pick()
  local host, draw <const> = self.hosts[1 + (random() * HOSTS // 1 | 0)], random()
  local overlaps <const>, pause = random() < 0.25, random()
  local others = 0
  for _, other in ipairs(self.hosts) do
    others = others + ((other ~= host and not other.away) and 1 or 0)
  end
  if host.away or event.takes and others == 0 or event.net and not self.net then
    event = events[5]
  end
  self.count = k
  self:look()
  local one <const> = { name = event.name, step = self.most, time = c.runtime.time() }
  self.open[#self.open + 1] = one
  event.act(self, host, draw)
  print(("%4d %-26s %s at step %d"):format(k, event.name, host.name, self.most))
  io.stdout:flush()
  if overlaps then
    local due <const> = NOW() + 2 * pause
    while NOW() < due do self:tick() end
    return
  end
  self:wait(function() return self.most > one.step end, event.name .. ": no new step")
  self:steady()
  local due <const> = NOW() + pause
  while NOW() < due do self:tick() end
end

-- Checks.

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- The round whose steps are those of the end, by step.
local function lineage(folder)
  local rounds <const>, last = {}, nil
  for line in io.lines(folder .. "/rounds") do
    local round, step, parent = line:match "^(%d+) (%d+) (-?%d+)$"
    last = tonumber(round)
    rounds[last] = { step = tonumber(step), parent = tonumber(parent) }
  end
  return function(step)
    local round = last
    while rounds[round].step > step do round = rounds[round].parent end
    return round
  end
end

-- The samples of each step that counts, sorted: a list of texts.
local function samples(folder)
  local owner <const>, steps = lineage(folder), {}
  local pipe <close> = assert(io.popen(("cat '%s'/samples.*"):format(folder)))
  for line in pipe:lines() do
    local round, step, ids = line:match "^(%d+) (%d+) (.*)$"
    step = tonumber(step)
    if tonumber(round) == owner(step) then
      steps[step] = steps[step] or {}
      for id in ids:gmatch "%d+" do table.insert(steps[step], tonumber(id)) end
    end
  end
  for step, list in next, steps do
    table.sort(list)
    steps[step] = table.concat(list, " ")
  end
  return steps
end

-- The undisturbed run; how many steps have other samples, and whether the weights are equal.
function Soak:compare(last)
  local folder <const>, own = child.folder(), self.launchers.folder
  child.write(folder .. "/last", last .. "\n")
  assert(os.execute(("cd '%s' && LT_NUM_THREADS=1 '%s' run '%s'"):format(folder, LTRAIN, FIT)))
  local expected <const>, found, wrong = samples(folder), samples(own), 0
  for step = 0, last - 1 do
    if expected[step] ~= found[step] then
      if wrong == 0 then
        print(("step %d has samples %s instead of %s"):format(step, found[step], expected[step]))
        print(read(own .. "/rounds"))
      end
      wrong = wrong + 1
    end
  end
  local same <const> = read(folder .. "/weights") == read(own .. "/weights")
  child.remove(folder)
  return wrong, same
end

function Soak:report()
  local by_name <const>, names = {}, {}
  for _, one in ipairs(self.all) do
    if not by_name[one.name] then
      by_name[one.name], names[#names + 1] = {}, one.name
    end
    table.insert(by_name[one.name], one.seconds)
  end
  table.sort(names)
  print(("%-26s %5s %10s %10s %10s"):format("event", "count", "median, s", "most, s", "sum, s"))
  for _, name in ipairs(names) do
    local list <const>, sum = by_name[name], 0
    table.sort(list)
    for _, seconds in ipairs(list) do sum = sum + seconds end
    print(("%-26s %5d %10.2f %10.2f %10.2f"):format(name, #list, list[#list // 2 + 1], list[#list],
      sum))
  end
end

function Soak:run()
  for _, host in ipairs(self.hosts) do self:start_host(host) end
  self:wait(function() return self.last end, "no step")
  self:steady()
  for k = 1, EVENTS do self:happen(k) end
  self:steady()
  child.write(self.launchers.folder .. "/last.tmp", (self.most + 40) .. "\n")
  os.rename(self.launchers.folder .. "/last.tmp", self.launchers.folder .. "/last")
  for _, host in ipairs(self.hosts) do
    self:wait(function() return self.launchers:read(host.name, "status") ~= "" end, "no end")
    if self.launchers:status(host.name) ~= 0 then self:fail(host.name .. ": not a status of 0") end
  end
  if not self.launchers:wait_gone(60) then self.orphans = self.orphans + 1 end
  self:report()
  self:look()
  local last <const> = self.most -- ranks agree on the end a step after one of them asks for it
  local wrong <const>, same = self:compare(last)
  print(("seed %d: %d events, %d hosts%s, %d steps; weights %s; %d steps with other samples; "
    .. "%d processes left"):format(SEED, EVENTS, HOSTS, self.net and " (namespaces)" or "", last,
    same and "bit for bit those of an undisturbed run" or "DIFFER", wrong, self.orphans))
  if not same or wrong > 0 or self.orphans > 0 then self:fail "the training was not undisturbed" end
end

local missing <const> = launchers.missing() or etcd.missing()
if missing then
  print(missing)
  return
end
print(("seed %d"):format(SEED))
local soak <const> = setmetatable({ hosts = {}, waiting = {}, lives = {}, open = {}, all = {},
  orphans = 0, read = {}, most = 0, usual = SLEEP, time = c.runtime.time() }, Soak)
for k = 1, HOSTS do soak.hosts[k] = { name = "h" .. k, slots = SLOTS[k], life = 0 } end
if not namespaces.missing {} then
  soak.net = child.folder()
  soak:hub("up", soak.net)
end
soak.launchers = launchers.new(read(FIT))
soak.cluster = etcd.start(3, { on = soak:on "hub", address = soak.net and "10.78.0.100" or nil })
local ok <const>, message = xpcall(soak.run, debug.traceback, soak)
soak.launchers:remove()
soak.cluster:stop()
if soak.net then
  soak:hub("down", soak.net)
  child.remove(soak.net)
end
if not ok then error(message, 0) end
