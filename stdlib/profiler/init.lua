--- stdlib/profiler/init.lua: `profiler = "simple"`, `"advanced"`, `"trace"` and `"xla"`: how long
--- hooks, reading batches and operations take.
--
-- "simple" prints a table when the loop ends and writes it to profile.txt in the folder of the run;
-- "advanced" has functions and lines of the script in it too (line_times.lua); "trace" also writes
-- trace.json, which chrome://tracing and Perfetto show, one of each rank; "xla" has the report of
-- lt.xla in its table too. Of a device of its own the time of an operation is that of its launch.
-- Nothing is checked, and nothing costs, without the option.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local line_times = require "ltrain.profiler.line_times"
local profiler_ranges = require "ltrain.core.profiler_ranges"
local xla = require "ltrain.core.xla"

local profiler = {}

local MOST <const> = 1000000 -- events of hooks in a trace
local SHOWN <const> = 30 -- operations of the table, functions, lines

-- A hook begins; what this returns is closed at its end.
local function open_range(self, name)
  if self.lines then self.lines:resume(name) end
  local began = self.profile:now()
  local outer <const> = self.outer and self.outer(name)
  return setmetatable({}, { __close = function()
    local seconds = self.profile:now() - began
    if self.lines then self.lines:resume() end
    if outer then getmetatable(outer).__close(outer) end
    local action = self.actions[name] or { name = name, calls = 0, total = 0 }
    self.actions[name] = action
    action.calls, action.total = action.calls + 1, action.total + seconds
    if self.events and #self.events < MOST then
      self.events[#self.events + 1] = { name, began, seconds }
    end
  end })
end

--- A loop begins: returns the profile.
function profiler.open(kind)
  local self = { kind = kind, actions = {}, events = kind == "trace" and {} or nil,
    outer = profiler_ranges.open, profile = c.runtime.profile(kind == "trace"),
    lines = kind == "advanced" and line_times.open() or nil }
  profiler_ranges.open = function(name) return open_range(self, name) end
  return self
end

-- Rows by their total, the longest first: a list of {name, calls, total}.
local function sorted(list)
  table.sort(list, function(a, b)
    if a[3] ~= b[3] then return a[3] > b[3] end
    return a[1] < b[1]
  end)
  return list
end

local function add_rows(lines, title, list, total, most)
  lines[#lines + 1] = ("%-36s %10s %14s %12s %8s"):format(title, "calls", "mean (ms)", "total (s)",
    "%")
  for i = 1, math.min(#list, most) do
    local name, calls, seconds = table.unpack(list[i])
    lines[#lines + 1] = ("%-36s %10d %14.4f %12.4f %8.2f"):format(name, calls,
      seconds / math.max(calls, 1) * 1e3, seconds, seconds / total * 100)
  end
  if #list > most then lines[#lines + 1] = ("... %d more"):format(#list - most) end
end

-- The table of a profile.
local function table_text(self, fn, total)
  local actions, lines = {}, { ("profile of %s: %.3f s"):format(fn, total), "" }
  for name, action in next, self.actions do
    actions[#actions + 1] = { name, action.calls, action.total }
  end
  add_rows(lines, "hook", sorted(actions), total, math.huge)
  lines[#lines + 1] = ""
  add_rows(lines, "operation", sorted(self.profile:ops()), total, SHOWN)
  if self.lines then
    local functions, of_lines = self.lines:rows()
    lines[#lines + 1] = ""
    add_rows(lines, "function of the script", sorted(functions), total, SHOWN)
    lines[#lines + 1] = ""
    add_rows(lines, "line of the script", sorted(of_lines), total, SHOWN)
  end
  if self.kind == "xla" then
    lines[#lines + 1] = ""
    lines[#lines + 1] = tostring(xla.report() or "xla: no device")
  end
  return table.concat(lines, "\n") .. "\n"
end

local function event_text(name, category, start, seconds, rank)
  return ('{"name":%s,"cat":"%s","ph":"X","ts":%.3f,"dur":%.3f,"pid":%d,"tid":%d}'):format(
    c.io.json_encode(name, { plain = true }), category, start * 1e6, seconds * 1e6, rank,
    category == "hook" and 0 or 1)
end

local function named(what, name, rank, thread)
  return ('{"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":"%s"}}'):format(what, rank,
    thread, name)
end

-- The events as JSON of Chrome's trace event format.
local function trace_text(self, rank)
  local parts = { named("process_name", "rank " .. rank, rank, 0),
    named("thread_name", "hooks", rank, 0), named("thread_name", "operations", rank, 1) }
  for _, event in ipairs(self.events) do
    parts[#parts + 1] = event_text(event[1], "hook", event[2], event[3], rank)
  end
  for k = 1, self.profile:count() do
    local name, start, seconds = self.profile:event(k)
    parts[#parts + 1] = event_text(name, "operation", start, seconds, rank)
  end
  return '{"displayTimeUnit":"ms","traceEvents":[\n' .. table.concat(parts, ",\n") .. "\n]}\n"
end

local function write(path, text)
  local ok, message = c.io.write_file(path, text)
  if ok then console.say("wrote " .. path) else console.say("warning: profiler: " .. message) end
end

--- It ends: prints and writes what was found. `folder`: that of the run. Returns the table.
function profiler.close(self, fn, folder)
  local _ <close> = c.runtime.plain_locale()
  local total, rank = self.profile:now(), c.dist.rank()
  self.profile:close()
  if self.lines then self.lines:close() end
  profiler_ranges.open = self.outer
  local made = c.io.make_folder(folder)
  local text = table_text(self, fn, total)
  if rank == 0 then
    console.write(text)
    if made then write(folder .. "/profile.txt", text) end
  end
  if not self.events or not made then return text end
  write(("%s/trace%s.json"):format(folder, rank > 0 and ".rank" .. rank or ""),
    trace_text(self, rank))
  return text
end

return profiler
