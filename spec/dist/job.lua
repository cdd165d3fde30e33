-- spec/dist/job.lua: jobs of several processes for specs and measurements: start one, look at it,
-- kill parts of it, and see that nothing is left.
--
-- Every process of a job carries a variable of its own in its environment, by which it is found in
-- /proc however it was started; a job that a spec leaves behind is killed.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local count = require "spec.count"
local hosts = require "spec.dist.two_hosts.hosts"
local mpirun = require "ltrain.clusters.mpirun"

local job = {}
job.__index = job

local BINARY <const> = os.getenv("LTRAIN") or arg[-1] or "ltrain"
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""
local AS_ROOT <const> = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
local MPIRUN <const> = "env " .. AS_ROOT .. "mpirun -q --oversubscribe -n %d %s"
local ON_HOSTS <const> = "env " .. AS_ROOT
  .. (SANITIZED and "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " or "") .. "%s script.lua"

local RANKS <const> = hosts.absolute "spec/dist/ranks.sh"

local serial = 0

--- The seconds of a clock that only goes forward.
job.now = c.runtime.clock

function job.sleep(seconds)
  os.execute(("sleep %.3f"):format(seconds))
end

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

local function lines(command)
  local list = {}
  local pipe <close> = assert(io.popen(command))
  for line in pipe:lines() do list[#list + 1] = line end
  return list
end

-- Why this build cannot connect ranks over UCX, or nil.
local function no_ucx()
  for _, part in ipairs(c.runtime.parts()) do
    if part.name == "ucx" and not part.present then return "ucx: " .. part.text end
  end
end

local MISSING <const> = { mpi = mpirun.missing, ["two hosts"] = hosts.missing, ucx = no_ucx }

--- Whether jobs over this backend can be started here; else false and the reason.
function job.can(over)
  local missing = MISSING[over] and MISSING[over]()
  return not missing, missing
end

--- What a script of a job may call: it says where it is with files in its folder.
--   mark(name)   makes the file NAME           exists(name)  whether it is there
--   pid(rank)    says which process a rank is  busy(seconds) computes in C
local PRELUDE <const> = [[
local lt = require "ltrain"
local function mark(name) local f = assert(io.open(name, "w")) f:close() end
local function pid(rank)
  local f = assert(io.open(("pid.%d.tmp"):format(rank), "w"))
  f:write(lt.dist.world().pid)
  f:close()
  assert(os.rename(("pid.%d.tmp"):format(rank), ("pid.%d"):format(rank)))
end
local function exists(name)
  local f = io.open(name)
  if f then f:close() end
  return f ~= nil
end
local function busy(seconds)
  local open = assert(package.loadlib(os.getenv "LT_BUILD" .. "/spec/c/busy.so", "luaopen_busy"))
  open()(seconds)
end
]]

-- The command line that runs script.lua on `ranks` ranks, half of them on each of two hosts.
local function command_of(o, two)
  if two then return ON_HOSTS:format(two[o.by or "mpirun"](two, o.ranks // 2)) end
  local words = o.words or ("%s run script.lua"):format(BINARY)
  if o.over == "ucx" then return ("%s %d %s"):format(RANKS, o.ranks, words) end
  return o.over == "mpi" and MPIRUN:format(o.ranks, words) or words
end

--- Starts `script` (its first line is behind the prelude). Options: ranks, over ("shm", "mpi",
--- "ucx", or "two hosts", which it makes: self.hosts), by (what starts it there: "mpirun" or
--- "ltrain"), env (a text of assignments), limit (seconds after which it is killed; 60), words
--- (instead of `ltrain run script.lua`), terminal (under a shell that leads a terminal).
function job.start(script, o)
  serial = serial + 1
  o.ranks, o.over = o.ranks or 2, o.over or "shm"
  local self = setmetatable({ folder = child.folder(), over = o.over, ranks = o.ranks }, job)
  self.id = ("LT_JOB=%s.%d"):format(self.folder:match("[^/]+$"), serial)
  self.hosts = o.over == "two hosts" and hosts.up() or nil
  child.write(self.folder .. "/script.lua", PRELUDE:gsub("%s*\n%s*", " ") .. script)
  child.write(self.folder .. "/job.sh", table.concat({
    "echo $$ >shell.pid",
    ("env %s %s timeout --foreground -k 1 %d %s >out 2>err </dev/null"):format(self.id,
      o.env or "", o.limit or 60, command_of(o, self.hosts)),
    "echo $? >status.tmp; mv status.tmp status",
  }, "\n") .. "\n")
  local how = o.terminal and "script -qc 'sh job.sh' /dev/null"
    or "env --default-signal=INT,HUP setsid sh job.sh"
  self.started = job.now()
  assert(os.execute(("cd %s && { %s & } >/dev/null 2>&1 </dev/null"):format(self.folder, how)))
  return self
end

--- Waits until the file `name` is in the job's folder; false after `seconds` (10).
function job:wait_for(name, seconds)
  local deadline = job.now() + (seconds or 10)
  repeat
    if c.io.kind(self.folder .. "/" .. name) then return true end
    job.sleep(0.005)
  until job.now() > deadline
  return false
end

--- The text of a file in its folder, or nil.
function job:read(name) return read(self.folder .. "/" .. name) end

--- Files below the folders in its folder whose names match.
function job:files(pattern)
  local found = {}
  for _, path in ipairs(lines(("cd %s && find . -type f | cut -c3- | sort"):format(self.folder))) do
    if path:find(pattern) then found[#found + 1] = path end
  end
  return found
end

--- The process of a rank (as its script said), or of the shell ("shell").
function job:pid(who)
  return math.tointeger(tonumber(self:read(
    math.type(who) and ("pid.%d"):format(who) or who .. ".pid")))
end

--- Its processes, by their environment: pids. Zombies have none.
function job:processes()
  return lines(("grep -lsaz '^%s$' /proc/[0-9]*/environ | cut -d/ -f3"):format(
    self.id:gsub("%.", "\\.")))
end

--- The pids of those whose command line matches a pattern of Lua.
function job:find(pattern)
  local found = {}
  for _, pid in ipairs(self:processes()) do
    local words = (read(("/proc/%s/cmdline"):format(pid)) or ""):gsub("\0", " ")
    if words:find(pattern) then found[#found + 1] = math.tointeger(pid) end
  end
  return found
end

--- Sends a signal by its name; whether there was such a process.
function job.signal(name, pid)
  return (os.execute(("kill -%s %d 2>/dev/null"):format(name, pid)))
end

--- Waits until none of its processes is left: the seconds from `since` (now) on, or nil after
--- `seconds`.
function job:wait_gone(seconds, since)
  since = since or job.now()
  local deadline = job.now() + seconds
  repeat
    if #self:processes() == 0 then return job.now() - since end
    job.sleep(0.01)
  until job.now() > deadline
  return nil
end

--- Its exit status as its shell saw it; nil while it runs (or when the shell was killed).
function job:status()
  return self:wait_for("status", 1) and math.tointeger(tonumber(self:read "status")) or nil
end

--- How often a plain text is on its standard error.
function job:count(text)
  return count(self:read "err" or "", text)
end

--- Kills what is left and removes its folder, and its hosts.
function job:remove()
  for _, pid in ipairs(self:processes()) do job.signal("KILL", math.tointeger(pid)) end
  if self.hosts then self.hosts:down() end
  child.remove(self.folder)
end
job.__close = job.remove

return job
