--- stdlib/runs/process.lua: the process that a run belongs to, and whether it is still there.
--
-- Numbers of processes are given again: the time at which one was started tells it from another.
-- Where there is no /proc nothing is known of others.
local c = require "ltrain.c"

local process = {}

local STARTED <const> = 22 -- field of /proc/PID/stat: ticks since the machine was started
local ZOMBIE <const> = "Z"

-- The fields of a process from the third on, which follow its name in parentheses.
local function fields_of(pid)
  local text = c.io.read_file(("/proc/%d/stat"):format(pid))
  local fields = {}
  for field in (text and text:match ".*%)(.*)" or ""):gmatch "%S+" do
    fields[#fields + 1] = field
  end
  return fields
end

local function ticks_of(pid)
  return math.tointeger(tonumber(fields_of(pid)[STARTED - 2]))
end

--- What tells this process from others: {host =, pid =, ticks =}.
function process.own()
  local pid = c.runtime.pid()
  return { host = c.runtime.hostname(), pid = pid, ticks = ticks_of(pid) }
end

--- Whether that process runs; nil: nobody here knows.
function process.is_alive(of)
  local here = of.host == c.runtime.hostname() and c.io.kind "/proc/self"
  if not here or not of.ticks then return nil end
  if not c.io.kind(("/proc/%d"):format(of.pid)) then return false end
  local fields = fields_of(of.pid)
  if #fields == 0 then return nil end
  return fields[1] ~= ZOMBIE and math.tointeger(tonumber(fields[STARTED - 2])) == of.ticks
end

--- The words of the command that this process was started with.
function process.command()
  local argv = {}
  for word in (c.io.read_file "/proc/self/cmdline" or ""):gmatch "([^\0]*)\0" do
    argv[#argv + 1] = word
  end
  return argv
end

return process
