--- stdlib/elastic/Ranks.lua: the ranks of this host in one round: their processes, and how they
--- ended.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local rank_variables = require "ltrain.elastic.rank_variables"
local restarts = require "ltrain.core.restarts"

local process = c.runtime.process

local Ranks = class.extend(nil, "Ranks")

local SIGNALS <const> = { [1] = "SIGHUP", [2] = "SIGINT", [3] = "SIGQUIT", [4] = "SIGILL",
  [6] = "SIGABRT", [7] = "SIGBUS", [8] = "SIGFPE", [9] = "SIGKILL", [10] = "SIGUSR1",
  [11] = "SIGSEGV", [13] = "SIGPIPE", [15] = "SIGTERM" }
local OF_SIGNAL <const> = 128

--- Starts them. o: {job = id, command = words, folder = of their error files, grace = seconds,
--- memory = of their snapshots (snapshot_memory.lua) or nil}. `failed` is set to a message where
--- one could not be started; the others are killed then.
function Ranks:init(round, o)
  self.round, self.list, self.left = round, {}, 0
  local slots <const> = round.slots
  local more, fds = {}, nil
  if o.memory then more, fds = o.memory:environment() end
  for local_rank = 0, slots - 1 do
    local one <const> = { rank = round.first_rank + local_rank,
      error_file = ("%s/error_%d_%d.json"):format(o.folder, round.number, local_rank) }
    local pid <const>, message = process.start(o.command,
      rank_variables(round, local_rank, { job = o.job, error_file = one.error_file, more = more }),
      { no_input = true, grace = math.ceil(o.grace), fds = fds })
    if not pid then
      self.failed = ("cannot start rank %d: %s"):format(one.rank, message)
      self:signal "KILL"
      return
    end
    one.pid = pid
    self.list[#self.list + 1], self.left = one, self.left + 1
  end
end

local function pids_of(self)
  local pids <const> = {}
  for _, one in ipairs(self.list) do
    if not one.status then pids[#pids + 1] = one.pid end
  end
  return pids
end

--- Waits until one of them has ended: that one, with its `status`; nil after `seconds`, or when a
--- signal has come.
function Ranks:wait(seconds)
  local pid <const>, status = process.wait_any(pids_of(self), seconds)
  for _, one in ipairs(self.list) do
    if pid == one.pid and not one.status then
      one.status, self.left = status, self.left - 1
      return one
    end
  end
end

--- Sends a signal to those that run.
function Ranks:signal(name)
  for _, pid in ipairs(pids_of(self)) do process.signal(pid, name) end
end

--- Whether all have ended with this status.
function Ranks:all(status)
  for _, one in ipairs(self.list) do
    if one.status ~= status then return false end
  end
  return self.left == 0
end

-- What a rank wrote before it ended with an error; nil: nothing.
local function report_of(one)
  local text <const> = c.io.kind(one.error_file) and c.io.read_file(one.error_file)
  local report <const> = text and c.io.json_decode(text, { plain = true })
  return type(report) == "table" and type(report.message) == "string" and report or nil
end

local function is_here(self, rank)
  local first <const> = self.round.first_rank
  return rank >= first and rank < first + #self.list
end

-- What the status of a rank without a report says; `sure`: it is not the consequence of another
-- rank's failure.
local function of_status(one)
  local number <const> = one.status - OF_SIGNAL
  if number > 0 then
    return { rank = one.rank, here = true, sure = true, killed = true,
      message = ("was ended by %s"):format(SIGNALS[number] or ("signal %d"):format(number)) }
  elseif one.status == restarts.STOPPED then
    return { rank = one.rank, here = false,
      message = ("stopped with status %d, and nothing had asked it to"):format(one.status) }
  end
  return { rank = one.rank, here = true,
    message = ("ended with status %d and no message"):format(one.status) }
end

--- The failure that the end of a rank reports: {rank =, step =, message =, here = whether that rank
--- is one of this host, sure = whether it is known to be the first one, killed = whether a signal
--- ended it}; nil for one that ended well. All ranks of a world report the one failure that they
--- have agreed on.
function Ranks:failure_of(one)
  if one.status == 0 then return nil end
  local report <const> = report_of(one)
  if not report then return of_status(one) end
  -- The traceback behind the first line has been printed by the rank.
  local rank <const> = math.tointeger(report.rank) or one.rank
  local here <const> = is_here(self, rank) and not report.signal
  local line <const> = report.message:match "^[^\n]*"
  return { rank = rank, step = math.tointeger(report.step), message = line,
    time = report.time, here = here, sure = here }
end

--- The failure of those that have ended: the first that is sure, else one of this host, else any.
function Ranks:first_failure()
  local best
  for _, one in ipairs(self.list) do
    local failure <const> = one.status and self:failure_of(one)
    local better <const> = failure and (not best or failure.sure and not best.sure
      or failure.here and not best.here or failure.sure == best.sure and failure.time
      and failure.time < (best.time or math.huge))
    if better then best = failure end
  end
  return best
end

return Ranks
