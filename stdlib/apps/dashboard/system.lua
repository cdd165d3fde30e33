--- stdlib/apps/dashboard/system.lua: serves the system metrics of a run's processes
--- (stdlib/runs/system_metrics.lua).
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local c = require "ltrain.c"
local json = require "ltrain.apps.dashboard.json"
local step_times = require "ltrain.runs.step_times"

local system = {}

local ROWS <const> = 1000
local RANKS <const> = 1024
local RECENT <const> = 60 -- seconds
local MEANS <const> = { steps_per_second = true, rank_wait = true, step_time = true }
local END <const> = 1 << 14 -- bytes at the end of a rank's file

-- Evenly chosen positions of n, the last one too.
local function chosen(n)
  local list = {}
  local count = math.min(n, ROWS)
  for i = 1, count do list[i] = count == 1 and n or (i - 1) * (n - 1) // (count - 1) + 1 end
  return list
end

-- The mean of a column over the last minute of a file, each value for the time until its row.
local function recent(times, values)
  local sum, seconds, last = 0, 0, times[#times]
  for i = #times, 2, -1 do
    local span = times[i] - times[i - 1]
    if values[i] == values[i] and span > 0 then
      sum, seconds = sum + values[i] * span, seconds + span
    end
    if last - times[i - 1] >= RECENT then break end
  end
  return seconds > 0 and sum / seconds or nil
end

-- What the end of a file of that form says: name -> the last value, of steps_per_second, rank_wait
-- and step_time the mean of the last minute; nil without a row.
local function last_row(run, name)
  local head, size = Catalogue.read(run, name, 0, END)
  local header = head and head:match "^[^\n]*\n"
  if not header then return nil end
  local text = head
  if size > END then
    text = header .. (Catalogue.read(run, name, size - END, END) or ""):match "^[^\n]*\n?(.*)$"
  end
  local curves, row, times = c.io.curves(), {}, nil
  if not curves:feed(text) then return nil end
  for k, column in ipairs(curves:names()) do
    local steps, epochs, values = curves:points(k, "row", nil, nil, 0)
    local value = values[#values]
    row[column] = value == value and value or nil
    times = column == "time" and values or times
    if MEANS[column] and times and #times == #values then row[column] = recent(times, values) end
    row.step, row.epoch = steps[#steps], epochs[#epochs]
  end
  return row
end

-- How many times the median of the others each rank takes for a step.
local function add_ratios(list)
  local values = {}
  for i, row in ipairs(list) do values[i] = row.step_time end
  if #values ~= #list then return end
  for i, row in ipairs(list) do row.slowness = step_times.ratio(values, i) end
end

local function ranks_of(run)
  local list = json.list {}
  local hosts = run.info.hosts or {}
  local count = math.tointeger(run.info.ranks) or 1
  for rank = 0, math.min(count, RANKS) - 1 do
    local row = last_row(run, rank == 0 and "system.csv" or ("system.rank%d.csv"):format(rank))
    if row then
      row.rank, row.wait, row.host = rank, row.rank_wait, hosts[rank + 1]
      list[#list + 1] = row
    end
  end
  add_ratios(list)
  return list
end

--- GET /api/run/ID/system
function system.answer(run)
  local process = type(run.info.process) == "table" and run.info.process or {}
  local answer = { columns = json.list { "time", "step", "epoch" }, rows = json.list {},
    ranks = ranks_of(run), devices = json.list(type(run.info.devices) == "table"
      and run.info.devices or {}), host = process.host, pid = process.pid,
    threads = run.info.threads }
  local curves = run.system:update()
  local k = curves and run.system:find "time"
  if not k then return answer end
  local steps, epochs, times = curves:points(k, "row", nil, nil, 0)
  local columns = {}
  for i, name in ipairs(curves:names()) do
    local _, _, values = curves:points(i, "row", nil, nil, 0)
    if i ~= k and #values == #times then -- each row has all of them
      columns[#columns + 1] = values
      table.insert(answer.columns, name)
    end
  end
  for i, at in ipairs(chosen(#times)) do
    local row = json.list { times[at], steps[at], epochs[at] }
    for j, column in ipairs(columns) do
      row[3 + j] = column[at] == column[at] and column[at] or json.null
    end
    answer.rows[i] = row
  end
  return answer
end

return system
