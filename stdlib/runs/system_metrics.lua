--- stdlib/runs/system_metrics.lua: samples CPU memory, device memory, speed and waiting times of a
--- training process into system.csv, for the dashboard.
--
-- A row of system.csv each second or so (each thousandth of a long run): at which time which step
-- had been reached, memory, how long the process had waited for batches and for other ranks, and of
-- several ranks how long a step took without waiting for others.
-- Ranks above 0 write system.rank<N>.csv. Between rows a batch costs a look at the clock.
local c = require "ltrain.c"
local proc_sizes = require "ltrain.core.proc_sizes"

local system_metrics = {}

local COLUMNS <const> = "epoch,step,time,steps_per_second,memory,data_wait,rank_wait,"
  .. "device_memory,step_time\n"
local LEAST <const>, MOST <const> = 1, 60 -- seconds between rows
local SHARE <const> = 1000 -- a row each thousandth of the time so far

--- The file of a rank's rows.
function system_metrics.file(rank)
  return rank == 0 and "system.csv" or ("system.rank%d.csv"):format(rank)
end

local function field(value)
  if value ~= value then return "nan" end
  return math.type(value) == "integer" and tostring(value) or ("%.6g"):format(value)
end

-- Half a row, of a process that was killed, is ended by the next.
local function mend(path)
  local text = c.io.read_file(path)
  if text and text ~= "" and text:sub(-1) ~= "\n" then c.io.append_file(path, "\n") end
end

-- Whether rows can be written: the folder of ranks above 0 is made by rank 0, in its own time.
local function open(p)
  if p.opened or c.io.kind(p.folder) ~= "folder" then return p.opened end
  if c.io.kind(p.path) then
    mend(p.path)
    p.opened = true
  else
    p.opened = c.io.append_file(p.path, COLUMNS) or false
  end
  return p.opened
end

--- Begins with a first row. of: {folder = the run's, rank =, device = its name, step =, epoch =}.
--- The next row is due at p.due, on c.runtime.clock(); what the process waits for batches is to be
--- added to p.waited, what it computes and reads without waiting for other ranks to p.busy.
function system_metrics.begin(of)
  local now = c.runtime.clock()
  local path = of.folder .. "/" .. system_metrics.file(of.rank)
  local p = { folder = of.folder, path = path, opened = false,
    device = of.device ~= "cpu" and of.device or nil, began = now, at = now, step = of.step,
    waited = 0.0, busy = 0.0, ranks_waited = c.dist.waited(), rows = 0 }
  system_metrics.write(p, of.step, of.epoch)
  return p
end

--- Writes a row.
function system_metrics.write(p, step, epoch)
  local now, ranks = c.runtime.clock(), c.dist.waited()
  p.due = now + math.max(LEAST, math.min((now - p.began) / SHARE, MOST))
  if not open(p) then return end
  local _ <close> = c.runtime.plain_locale()
  local seconds = math.max(now - p.at, 1e-9)
  -- Of the first row nothing is known: it ends no span of time.
  local function share(waited) return p.rows > 0 and math.min(waited / seconds, 1) or 0 / 0 end
  local memory = proc_sizes("/proc/self/status").VmRSS or 0 / 0 -- nan: not known
  local device = p.device and c.runtime.memory(p.device).live_bytes or 0 / 0
  c.io.append_file(p.path, ("%d,%d,%.3f,%s,%s,%s,%s,%s,%s\n"):format(epoch, step, c.runtime.time(),
    field(p.rows > 0 and (step - p.step) / seconds or 0 / 0), field(memory),
    field(share(p.waited)), field(share(ranks - p.ranks_waited)), field(device),
    field(p.busy > 0 and step > p.step and p.busy / (step - p.step) or 0 / 0)))
  p.at, p.step, p.waited, p.ranks_waited, p.rows = now, step, 0.0, ranks, p.rows + 1
  p.busy = 0.0
end

--- The last row, unless the one before has just been written: the mean of a moment says nothing.
function system_metrics.finish(p, step, epoch)
  if p.rows > 1 and c.runtime.clock() - p.at < LEAST / 2 then return end
  system_metrics.write(p, step, epoch)
end

return system_metrics
