-- spec/bench/elastic.lua: what snapshots cost, and how long a killed rank stops a job.
--
--   ./dev bench elastic [ROUNDS [TORCHRUN]]
--
-- Cost: one rank trains for half a minute with snapshots each 10 seconds; the processor time that
-- the steps which made one took more than the median step, with that of the helper thread, and its
-- share of all. Recovery: under `ltrain launch`
-- two ranks of DDP train, rank 1 is killed at a random moment; the time from there until rank 0
-- begins its next step, and how many steps are done again. Beside it torchrun with PyTorch, where
-- one is there, which saves a checkpoint each 10 seconds.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local hosts = require "spec.dist.two_hosts.hosts"

local ROUNDS <const> = tonumber(arg and arg[1]) or 5
local TORCHRUN <const> = arg and arg[2]
local LTRAIN <const> = hosts.absolute(os.getenv "LTRAIN" or "build/ltrain")
local HERE <const> = hosts.absolute "spec/bench"
local MODELS <const> = {
  { name = "small (66 KB)", LAYERS = 4, WIDTH = 64 },
  { name = "100 MB", LAYERS = 6, WIDTH = 2048 },
}

-- Steps of a rank: { pid =, step =, time =, cpu =, serial = of the last snapshot }.
local function marks(folder, rank)
  local list = {}
  local file <close> = io.open(("%s/marks.%d"):format(folder, rank))
  for line in file and file:lines() or function() end do
    local pid, step, time, cpu, serial = line:match "^(%d+) (%d+) ([%d.]+) ?([%d.]*) ?(%d*)$"
    if pid then
      list[#list + 1] = { pid = pid, step = math.tointeger(tonumber(step)), time = tonumber(time),
        cpu = tonumber(cpu), serial = tonumber(serial) }
    end
  end
  return list
end

-- The process of the last whole line: a small model has too many to read them all again and again.
local function last_pid(folder, rank)
  local file <close> = assert(io.open(("%s/marks.%d"):format(folder, rank)))
  file:seek("set", math.max(0, file:seek "end" - 512))
  local pid
  for line in file:read("a"):gmatch "[^\n]*\n" do pid = line:match "^(%d+) %d+ [%d.]+ " or pid end
  return pid
end

local function variables(model, folder, seconds, every)
  return ("env MARKS=%s/marks LAYERS=%d WIDTH=%d SECONDS=%d EVERY='%s' LT_NUM_THREADS=1 "
    .. "OMP_NUM_THREADS=1"):format(folder, model.LAYERS, model.WIDTH, seconds, every)
end

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

-- The cost.

local function cost(model)
  local folder <const>, seconds <const> = child.folder(), 35
  os.execute(("cd %s && %s '%s' launch '%s/elastic_fit.lua' >out 2>&1"):format(folder,
    variables(model, folder, seconds, "10 s"), LTRAIN, HERE))
  local list, steps, with = marks(folder, 0), {}, {}
  for i = 3, #list do -- the first step warms up
    local is_with = list[i].serial > list[i - 1].serial
    table.insert(is_with and with or steps, list[i].cpu - list[i - 1].cpu)
  end
  local usual, more = median(steps), 0
  for _, one in ipairs(with) do more = more + one - usual end
  print(("%-16s %5d steps, median %.2f ms of the processor; %d snapshots, %.1f ms each, %.2f %% of "
    .. "all"):format(model.name, #list, usual * 1e3, #with, more / #with * 1e3,
    100 * more / (list[#list].cpu - list[2].cpu)))
  child.remove(folder)
end

-- Recovery.

local function wait_for(condition, seconds)
  local deadline = c.runtime.clock() + seconds
  while c.runtime.clock() < deadline do
    local found = condition()
    if found then return found end
    os.execute "sleep 0.002"
  end
end

-- Kills rank 1 after `delay` seconds of training; seconds until the next step of rank 0, how many
-- steps it does again, and the processor time of its process before that step.
local function recovery(model, launcher, delay)
  local folder <const> = child.folder()
  os.execute(("cd %s && { %s setsid %s >out 2>&1 & echo $! >pid; }"):format(folder,
    variables(model, folder, 120, "10 s"), launcher))
  local first = wait_for(function() return marks(folder, 1)[5] end, 60)
  local seconds, again, cpu
  if first then
    os.execute(("sleep %.3f"):format(delay))
    local killed = marks(folder, 1)
    local pid <const>, survivor <const> = killed[#killed].pid, last_pid(folder, 0)
    local at = c.runtime.time()
    os.execute("kill -KILL " .. pid)
    wait_for(function() return last_pid(folder, 0) ~= survivor end, 120)
    local last
    for _, one in ipairs(marks(folder, 0)) do
      if one.pid ~= survivor then
        seconds, again, cpu = one.time - at, last.step - one.step, one.cpu
        break
      end
      last = one
    end
  end
  if not seconds then os.execute(("tail -5 %s/out"):format(folder)) end
  os.execute(("kill -TERM -$(cat %s/pid) 2>/dev/null; sleep 2; "
    .. "kill -KILL -$(cat %s/pid) 2>/dev/null"):format(folder, folder))
  child.remove(folder)
  return seconds, again, cpu
end

local function recoveries(name, model, launcher)
  local list, most, again, used = {}, 0, {}, {}
  for k = 1, ROUNDS do
    local seconds, steps, cpu = recovery(model, launcher, 11 + 3 * k / ROUNDS)
    list[k], again[k], used[k] = seconds or math.huge, steps or -1, cpu or 0
    most = math.max(most, list[k])
  end
  print(("%-12s %-16s from the kill to the next step: median %.2f s, most %.2f s, of it %.2f s on "
    .. "the processor; %d steps done again"):format(name, model.name, median(list), most,
    median(used), median(again)))
end

for _, model in ipairs(MODELS) do cost(model) end
for _, model in ipairs(MODELS) do
  recoveries("ltrain", model, ("'%s' launch --nproc_per_node 2 '%s/elastic_fit.lua'"):format(LTRAIN,
    HERE))
  if TORCHRUN then
    recoveries("torchrun", model, ("'%s' --nproc_per_node 2 --max_restarts 3 '%s/elastic_fit.py'")
      :format(TORCHRUN, HERE))
  end
end
