-- spec/dist/link_spec.lua: ranks on two hosts, and the link between them is cut.
--
-- The hosts are network namespaces of this machine (spec/dist/two_hosts). A cut drops frames
-- silently: for less than the timeout it must not matter, for longer both sides end by themselves.
-- Cases that only wait do it together. Bounds are those of ./dev bench failure, ten times.
-- tags: half, slow, waits
local hosts = require "spec.dist.two_hosts.hosts"
local job = require "spec.dist.job"
local process = require("ltrain.c").runtime.process

local TIMEOUT <const> = 12
local BOUND <const> = TIMEOUT + 7 -- a rank that lost rank 0 gives the others 5 s

local reason = select(2, job.can "two hosts")
local when = reason and pending or it

-- All ranks reduce until there is the file "enough"; "gap" is the longest that one of them took.
local WORK <const> = [[
pid(lt.dist.rank())
local x, k, gap, last = lt.ones(1000), 0, 0, require "ltrain.c".runtime.clock()
repeat
  k = k + 1
  local sum = lt.dist.all_reduce(x)
  assert(sum:min():item() == lt.dist.world_size() and sum:max():item() == lt.dist.world_size())
  require "ltrain.c".runtime.sleep(0.01)
  local now = require "ltrain.c".runtime.clock()
  gap, last = math.max(gap, now - last), now
  if k == 10 and lt.dist.rank() == 0 then mark "ready" end
until lt.dist.broadcast(exists "enough")
if lt.dist.rank() == 0 then
  local f <close> = assert(io.open("gap", "w"))
  f:write(gap)
end
]]

-- A job that reduces, on hosts of its own, started by "mpirun" or "ltrain".
local function start(by)
  return job.start(WORK, { over = "two hosts", by = by, limit = 100,
    env = ("LT_TIMEOUT=%d"):format(TIMEOUT) })
end

local function wait_ready(one)
  assert(one:wait_for("ready", 60), one:read "err")
end

local function files_of(one)
  return one:files "^ltrain_failure_.*%.txt$"
end

-- What a job said, without Open MPI's word on a group that its agent had already made by itself.
local function said(one)
  return (one:read("err"):gsub("%[[^\n]*plm:rsh: Warning: setpgid[^\n]*\n", ""))
end

-- The message that a rank left.
local function message_of(one, rank)
  for _, name in ipairs(files_of(one)) do
    if name:find(("failure.rank%d.txt"):format(rank), 1, true) then return one:read(name) end
  end
  return "no file"
end

-- Starts a job for each case {by, from} and cuts its link.
local function cut_links(cases)
  for _, case in ipairs(cases) do case.one = start(case.by) end
  for _, case in ipairs(cases) do wait_ready(case.one) end
  job.sleep(1.5) -- each has heard of the others
  for _, case in ipairs(cases) do
    case.one.cut_at = job.now()
    case.one.hosts:cut(case.from)
  end
end

local function stop_all(cases)
  for _, case in ipairs(cases) do
    if case.one then case.one:remove() end
    case.one = nil
  end
end

-- Heals the links when each was cut for so long; the seconds of the cut that took longest.
local function heal_links(cases, seconds)
  local most = 0
  for _, case in ipairs(cases) do
    job.sleep(math.max(0, seconds - (job.now() - case.one.cut_at)))
    case.one.hosts:heal()
    most = math.max(most, job.now() - case.one.cut_at)
  end
  for _, case in ipairs(cases) do
    assert(os.execute("touch " .. case.one.folder .. "/enough"))
  end
  return most
end

-- The kernel changes one network at a time: where others come and go, healing may take seconds, and
-- a cut that came too near the timeout proves nothing. Then all is done again.
local function cut_for(cases, seconds, at_most)
  for _ = 1, 3 do
    cut_links(cases)
    if heal_links(cases, seconds) <= at_most then return end
    stop_all(cases)
  end
  error(("links were not healed within %g s, three times"):format(at_most))
end

describe("two hosts" .. (reason and " (left out: " .. reason .. ")" or ""), function()
  when("are one world, by --hosts", function()
    local one <close> = job.start([[
      local sum = lt.dist.all_reduce(lt.ones(300000) * (lt.dist.rank() + 1))
      local world = lt.dist.world()
      local line = ("%s node %d of %d, local %d of %d: %g"):format(world.hosts[world.rank + 1],
        world.node_rank, world.nodes, world.local_rank, world.local_ranks, sum:mean():item())
      local lines = lt.dist.gather(line)
      if lines then print(table.concat(lines, "\n")) end
    ]], { over = "two hosts", by = "ltrain", ranks = 4 })
    assert.is_true(one:wait_for("status", 60))
    assert.equal("", said(one))
    assert.equal("lta node 0 of 2, local 0 of 2: 10\nlta node 0 of 2, local 1 of 2: 10\n"
      .. "ltb node 1 of 2, local 0 of 2: 10\nltb node 1 of 2, local 1 of 2: 10\n", one:read "out")
    assert.equal(0, one:status())
  end)

  when("end soon after an error, by --hosts", function()
    local one <close> = job.start([[
      lt.dist.barrier()
      if lt.dist.rank() == 3 then mark "event" error "boom" end
      lt.dist.barrier()
    ]], { over = "two hosts", by = "ltrain", ranks = 4, limit = 80 })
    assert.is_true(one:wait_for("event", 60), one:read "err")
    assert.truthy(one:wait_gone(40)) -- wanted: 1 s; mpirun and its daemon would sleep for 80
    assert.equal(1, one:status())
    assert.equal("ltrain: rank 3: script.lua:2: boom\n", said(one))
  end)

  when("are refused within a second when one of them cannot be reached", function()
    local two <close> = hosts.up()
    local began = job.now()
    local status, text = process.capture(two:on_lta(hosts.binary, "run", "--launcher",
      "mpi", "--devices", "1", "--hosts", "ltb,10.77.0.9", "spec/dist/link_spec.lua"), 60)
    assert.equal(2, status, text)
    assert(job.now() - began < 10) -- wanted: 1 s
    assert.equal("ltrain: run: 2 of 2 hosts cannot be reached by ssh: ltb: port 22: Connection "
      .. "refused; 10.77.0.9: no answer within 0.8 s\n", text)
  end)
end)

describe("a link that is cut for less than the timeout", function()
  local cases <const> = {
    { name = "both ways", by = "mpirun" },
    { name = "from rank 0's host", by = "mpirun", from = "lta" },
    { name = "towards rank 0's host", by = "mpirun", from = "ltb" },
  }

  setup(function() if not reason then cut_for(cases, 0.6 * TIMEOUT, 0.75 * TIMEOUT) end end)
  teardown(function() stop_all(cases) end)

  for _, case in ipairs(cases) do
    when(case.name .. " does not end the job", function()
      local one = case.one
      assert.is_true(one:wait_for("status", 60), one:read "err")
      -- A host that is silent for 5 s is named. TCP tries again ever later: ranks that hear of each
      -- other may still miss what they wait for when half of the timeout is over, and that is
      -- reported.
      local err = said(one):gsub("ltrain: rank %d is late: [^\n]*an error at 12 s%)\n", "")
      assert.equal("", (err:gsub("ltrain: rank %d %(pid %d+ on lt%a%) is waited for, and has sent "
        .. "no heartbeat for %d s %(cut off%? its host does not answer%); an error at 12 s\n", "")))
      assert.equal(0, one:status())
      assert.same({}, files_of(one))
      assert(tonumber(one:read "gap") > 0.5 * TIMEOUT) -- nothing got through
    end)
  end
end)

describe("a link that is cut for longer than the timeout", function()
  local cases <const> = {
    { name = "both ways", by = "ltrain" },
    { name = "both ways, under a mpirun of one's own,", by = "mpirun" },
    { name = "towards rank 0's host", by = "mpirun", from = "ltb" },
  }

  local stopped -- waits for as long: beside the others

  setup(function()
    if reason then return end
    stopped = start "mpirun"
    cut_links(cases)
    wait_ready(stopped)
    stopped.since = job.now()
    assert.is_true(job.signal("STOP", stopped:pid(1)))
  end)
  teardown(function()
    stop_all(cases)
    if stopped then stopped:remove() end
  end)

  when("is distinguished from a rank stopped on another host, which is left to mpirun", function()
    local seconds = stopped:wait_gone(10 * (TIMEOUT + 5), stopped.since)
    assert(seconds, "processes are left; stderr: " .. stopped:read "err")
    assert.matches("ltrain: rank 1 %(pid %d+ on ltb%) is lost: no heartbeat for %d+ s "
      .. "%(stopped%? its host answers%)", stopped:read "err")
  end)

  for _, case in ipairs(cases) do
    when(case.name .. " ends both sides", function()
      local one = case.one
      local seconds = one:wait_gone(10 * BOUND - (job.now() - one.cut_at), one.cut_at)
      assert(seconds, "processes are left; stderr: " .. (one:read "err" or ""))
      local err = one:read "err"
      assert(seconds > TIMEOUT - 2, err)
      assert.equal(1, one:status(), err)
      assert.equal(1, one:count "is lost: no heartbeat for ", err)
      assert.matches("ltrain: rank 1 %(pid %d+ on ltb%) is lost: no heartbeat for %d+ s "
        .. "%(cut off%? its host does not answer%); last known: rank 1: %S+", err)
      assert.not_matches("unknown", err)
      assert.matches("^rank 1 .* is lost", message_of(one, 0))
      if not case.from then
        assert.matches("^rank 0 is lost: no heartbeat for %d+ s "
          .. "%(cut off%? its host does not answer%)"
          .. "; rank 1: %S+ .* at script.lua:%d+", message_of(one, 1))
      else -- rank 0's message may still get there
        assert.matches("^rank [01] .*is lost", message_of(one, 1))
      end
    end)
  end
end)
