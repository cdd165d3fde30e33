--- stdlib/runs/step_times.lua: times of the ranks' steps, and which rank is a straggler.
--
-- A time is what a rank takes for a step without waiting for other ranks: in a step that ends with
-- an exchange the fast ranks wait for the slow one, so that its duration is the same on all.
local c = require "ltrain.c"
local record = require "ltrain.runs.record"
local run_json = require "ltrain.runs.run_json"
local system_metrics = require "ltrain.runs.system_metrics"

local step_times = {}

step_times.SLOW = 2 -- times the median of the other ranks
local RECENT <const> = 60 -- seconds
local END <const> = 1 << 14 -- bytes at the end of a file

--- How many times the median of the others a value of a list is; nil of one that is alone, or where
--- that is not above 0.
function step_times.ratio(values, index)
  local others = {}
  for i, value in ipairs(values) do
    if i ~= index then others[#others + 1] = value end
  end
  table.sort(others)
  local n = #others
  local median = n > 0 and (others[(n + 1) // 2] + others[n // 2 + 1]) / 2 or 0
  return median > 0 and values[index] / median or nil
end

local function fields_of(line)
  local fields = {}
  for field in (line .. ","):gmatch "([^,]*)," do fields[#fields + 1] = field end
  return fields
end

-- The column of a name in a header; nil without it.
local function column_of(header, wanted)
  for i, name in ipairs(fields_of(header)) do
    if name == wanted then return i end
  end
end

-- The mean of the step times in the last minute of a file; nil: it has none.
local function recent(text)
  local header = text:match "^[^\n]*"
  local time, value = column_of(header, "time"), column_of(header, "step_time")
  if not value then return nil end
  local rows, last = {}, nil
  for line in text:sub(math.max(#header + 2, #text - END)):gmatch "[^\n]+" do
    local row = fields_of(line)
    local at, taken = tonumber(row[time]), tonumber(row[value])
    if at and taken then rows[#rows + 1], last = { at, taken }, at end
  end
  local sum, count = 0, 0
  for _, row in ipairs(rows) do
    if row[2] == row[2] and last - row[1] < RECENT then sum, count = sum + row[2], count + 1 end
  end
  return count > 0 and sum / count or nil
end

-- The machines of the ranks, from the record of the run; {} without one.
local function hosts_of(folder)
  local text = c.io.kind(folder .. "/" .. record.FILE)
    and c.io.read_file(folder .. "/" .. record.FILE, record.MOST_BYTES)
  local entry = text and c.io.json_decode(text, { plain = true })
  return type(entry) == "table" and run_json.clean(entry).hosts or {}
end

--- The ranks of the run in a folder that have recorded times: a list of {rank =, seconds = the mean
--- of the last minute, host = or nil}, in the order of ranks.
function step_times.read(folder)
  local list, hosts, rank = {}, hosts_of(folder), 0
  while true do
    local path = folder .. "/" .. system_metrics.file(rank)
    local text = c.io.kind(path) == "file" and c.io.read_file(path)
    if not text then return list end
    local seconds = recent(text)
    if seconds then
      list[#list + 1] = { rank = rank, seconds = seconds, host = hosts[rank + 1] }
    end
    rank = rank + 1
  end
end

return step_times
