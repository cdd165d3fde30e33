-- spec/elastic/launchers.lua: jobs of `ltrain launch` for specs: launchers that stand for hosts, on
-- this machine or each on a host of its own; all in one folder, with one script.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local count = require "spec.count"
local hosts = require "spec.dist.two_hosts.hosts"
local job = require "spec.dist.job"

local launchers = {}
launchers.__index = launchers

local LTRAIN <const> = hosts.absolute(os.getenv "LTRAIN" or "build/ltrain")
local SANITIZED <const> = (os.getenv "LT_SANITIZE" or "") ~= ""
local LIMIT <const> = SANITIZED and 240 or 90 -- seconds

--- What a script gets before its own lines, in one line: `step(global_step, trainer)` is called in
--- each batch; `train(options)` is a fit that prints from and to which step it ran.
local PRELUDE <const> = [[
local lt = require "ltrain"
local world = lt.dist.world()
local function kill() os.execute "kill -KILL $PPID" end
local function mark(name) local f = assert(io.open(name, "w")) f:close() end
local function exists(name) local f = io.open(name) if f then f:close() end return f ~= nil end
local function nap(seconds) os.execute(("sleep %.2f"):format(seconds)) end
local step = function() end
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(3, 1) end
function Net:training_step(batch)
  step(self.trainer.global_step, self.trainer)
  return self.layer(batch[1]):mean()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local function train(options)
  local o = {max_epochs = 4, enable_progress_bar = false, enable_model_summary = false,
    num_sanity_val_steps = 0, log_every_n_steps = 0}
  for key, value in pairs(options or {}) do o[key] = value end
  local t = lt.Trainer(o)
  function Net:on_train_start()
    t:print(("start %d of %d ranks: from step %d: %s"):format(world.incarnation, t.world_size,
      t.global_step, world.reason))
  end
  lt.seed(1)
  t:fit(Net(), lt.data.DataLoader(lt.data.TensorDataset(lt.ones(12, 3)), {global_batch_size = 4}))
  t:print("to step " .. t.global_step)
end
]]

--- Why ranks cannot be launched here, or nil.
function launchers.missing()
  local _, reason = job.can "ucx"
  return reason
end

--- A folder with the script.
function launchers.new(script)
  local self = setmetatable({ folder = child.folder(), started = {} }, launchers)
  self.id = ("LT_JOB=%s"):format(self.folder:match "[^/]+$")
  child.write(self.folder .. "/script.lua", PRELUDE:gsub("%s*\n%s*", " ") .. script)
  return self
end

--- Starts a launcher with these words of its command line; its output goes to files that begin with
--- `name`. Options: on = words before the command (of a host), env, limit = seconds.
function launchers:start(name, words, options)
  local o = options or {}
  for _, suffix in ipairs { "status", "pid" } do os.remove(self:path(name, suffix)) end
  self.started[#self.started + 1] = name
  local command = ("env --default-signal=INT,HUP %s %s timeout --foreground -k 1 %d %s sh -c "
    .. "'echo $$ >%s.pid; exec \"%s\" launch %s script.lua'"):format(self.id, o.env or "",
    o.limit or LIMIT, o.on or "", name, LTRAIN, words)
  child.write(("%s/%s.sh"):format(self.folder, name), ("cd '%s'\nname=%s\n%s >>$name.out "
    .. "2>>$name.err </dev/null\necho $? >$name.tmp; mv $name.tmp $name.status\n"):format(
    self.folder, name, command))
  assert(os.execute(("cd '%s' && { setsid sh %s.sh & } >/dev/null 2>&1 </dev/null"):format(
    self.folder, name)))
end

function launchers:path(name, suffix) return ("%s/%s.%s"):format(self.folder, name, suffix) end

--- The text of one of its files, "" before it is there.
function launchers:read(name, suffix)
  local file <close> = io.open(self:path(name, suffix))
  return file and file:read "a" or ""
end

-- Whether `test()` comes true within `seconds`.
local function wait(test, seconds)
  local deadline = c.runtime.clock() + (seconds or (SANITIZED and 120 or 40))
  repeat
    if test() then return true end
    job.sleep(0.02)
  until c.runtime.clock() > deadline
  return false
end

--- Its exit status; nil when it has not ended in time.
function launchers:status(name, seconds)
  wait(function() return self:read(name, "status") ~= "" end, seconds)
  return math.tointeger(tonumber(self:read(name, "status")))
end

--- Waits for a file that the script makes, or a text in one.
function launchers:wait_for(file)
  return wait(function() return c.io.kind(self.folder .. "/" .. file) ~= nil end)
end

function launchers:wait_text(name, suffix, text)
  return wait(function() return self:read(name, suffix):find(text, 1, true) ~= nil end)
end

--- Sends a signal to a launcher.
function launchers:signal(name, signal)
  os.execute(("kill -%s %s"):format(signal, self:read(name, "pid")))
end

--- How often a text is on the output of all launchers.
function launchers:count(text)
  local found = 0
  for _, name in ipairs(self.started) do found = found + count(self:read(name, "out"), text) end
  return found
end

--- What all launchers wrote, for messages.
function launchers:all()
  local parts = {}
  for _, name in ipairs(self.started) do
    for _, suffix in ipairs { "out", "err", "status" } do
      parts[#parts + 1] = ("--- %s.%s\n%s"):format(name, suffix, self:read(name, suffix))
    end
  end
  return table.concat(parts, "\n")
end

--- The processes of the job, by their environment.
function launchers:processes() return job.processes(self) end

--- Whether none is left within `seconds`.
function launchers:wait_gone(seconds) return job.wait_gone(self, seconds) end

function launchers:remove()
  repeat
    local pids = self:processes()
    for _, pid in ipairs(pids) do job.signal("KILL", math.tointeger(pid)) end
  until #pids == 0
  child.remove(self.folder)
end
launchers.__close = launchers.remove

return launchers
