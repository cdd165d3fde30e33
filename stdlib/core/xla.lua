--- stdlib/core/xla.lua: lt.xla: devices of PJRT plugins, what was compiled for them and why.
--
-- `print(lt.xla.report())` shows programs, how long they took to compile, what ended the recorded
-- graphs, and operations that ran on the CPU instead; with `profiler = "xla"` the Trainer prints it
-- at the end of a loop.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"
local tree = require "ltrain.core.tree"

local runtime <const> = c.runtime
local xla = {}

-- "xla:0" of what a function was called with.
local function name_of(device, fn)
  if device == nil then return "xla:0" end
  if math.type(device) == "integer" then return ("xla:%d"):format(device) end
  if type(device) == "string" then return device end
  errors.blame("xla.%s: device must be a number from 0 or text like 'xla:0': got %s", fn,
    errors.show(device))
end

--- Whether a PJRT plugin has been found.
function xla.is_available() return xla.device_count() > 0 end

--- The number of devices; 0 without a plugin.
function xla.device_count() return (runtime.devices "xla") or 0 end

--- The name of a device, such as "cpu": its platform.
function xla.get_device_name(device)
  return runtime.device_name(name_of(device, "get_device_name"))
end

--- The free and the total memory of a device in bytes; 0, 0 where its plugin does not say. Under
--- the strategy "xla" of the one with the least free memory.
function xla.mem_get_info(device) return runtime.device_memory(name_of(device, "mem_get_info")) end

--- Bytes of this process's tensors on a device.
function xla.memory_allocated(device)
  return runtime.memory(name_of(device, "memory_allocated")).live_bytes
end

--- Waits until all work issued to a device is complete.
function xla.synchronize(device) runtime.synchronize(name_of(device, "synchronize")) end

local ENDS <const> = { batch = "end of a batch", read = "a value is read", wait = "a wait",
  bound = "10,000 operations", context = "another thread" }

local function bytes_text(n)
  if n < 1e6 then return ("%.1f kB"):format(n / 1e3) end
  return ("%.1f MB"):format(n / 1e6)
end

local function add_programs(lines, r)
  lines[#lines + 1] = ("programs: %d, of which %d compiled in %.2f s and %d of earlier runs")
    :format(#r.programs, r.compiled, r.compile_seconds, r.loaded)
  lines[#lines + 1] = ("%11s %10s %8s  %-24s %s"):format("operations", "seconds", "runs",
    "begins at", "compiled because")
  for _, p in ipairs(r.programs) do
    lines[#lines + 1] = ("%11d %10.3f %8d  %-24s %s"):format(p.operations, p.seconds, p.runs,
      p.line, p.loaded and p.reason .. " (of an earlier run)" or p.reason)
  end
end

local function add_cuts(lines, r)
  lines[#lines + 1] = "graphs ended by:"
  for _, cut in ipairs(r.cuts) do
    lines[#lines + 1] = ("%11d  %s%s"):format(cut.count, ENDS[cut.reason],
      cut.line ~= "" and " at " .. cut.line or "")
  end
end

local function add_fallbacks(lines, r)
  local names = tree.keys(r.fallbacks)
  if #names == 0 then return end
  lines[#lines + 1] = "operations that ran on the CPU:"
  for _, name in ipairs(names) do
    lines[#lines + 1] = ("%11d  %s"):format(r.fallbacks[name], name)
  end
end

local Report = {}

-- The report as a text.
function Report.__tostring(r)
  if r.platform == "" then return r.device .. ": not used" end
  local lines = { ("%s: %s %s"):format(r.device, r.platform, r.version:match "^[^\n]*") }
  add_programs(lines, r)
  add_cuts(lines, r)
  add_fallbacks(lines, r)
  lines[#lines + 1] = ("copies to the device: %d, %s; to the host: %d, %s"):format(r.uploads,
    bytes_text(r.uploaded), r.reads, bytes_text(r.read))
  for i, m in ipairs(r.memory) do
    lines[#lines + 1] = ("memory of %s: %s in use%s%s"):format(
      #r.memory > 1 and "device " .. i - 1 or "the device", bytes_text(m.in_use),
      m.peak and ", at most " .. bytes_text(m.peak) or "",
      m.limit and ", of " .. bytes_text(m.limit) or "")
  end
  lines[#lines + 1] = r.cache == "" and "programs are not kept for later runs"
    or ("programs are kept in %s"):format(r.cache)
  if r.cache_problem ~= "" then lines[#lines] = "programs are not kept: " .. r.cache_problem end
  return table.concat(lines, "\n")
end

-- In the order in which they were compiled, with what they sum up to.
local function sum_up(r)
  local programs = {}
  r.compiled, r.loaded, r.compile_seconds, r.runs = 0, 0, 0, 0
  for i = #r.programs, 1, -1 do
    local p = r.programs[i]
    programs[#programs + 1] = p
    r.runs = r.runs + p.runs
    if p.loaded then
      r.loaded = r.loaded + 1
    else
      r.compiled, r.compile_seconds = r.compiled + 1, r.compile_seconds + p.seconds
    end
  end
  r.programs = programs
end

--- What the devices of this process have done: a table, whose tostring is a report.
---
--- Fields: `programs`, a list of {operations =, line =, reason =, seconds =, loaded =, runs =}, by
--- when they were compiled (`reason`: why; `loaded`: from an earlier run); `compiled`, `loaded`,
--- `compile_seconds`, `runs`: their sums; `cuts`, a list of {reason =, line =, count =}: what ended
--- the recorded graphs; `fallbacks`: how often operations ran on the CPU instead, by name;
--- `uploads`, `uploaded`, `reads`, `read`: copies to the device and to the host, and their bytes;
--- `memory`: {in_use =, peak =, limit =} in bytes of each device that the strategy "xla" uses,
--- where the plugin says; `platform`, `version`, `cache`: the folder in which programs are kept.
--- nil and why without a plugin.
function xla.report()
  local count, kind = runtime.devices "xla"
  if not count then return nil, kind end
  local r = c.io.json_decode(runtime.device_report "xla")
  r.device, r.fallbacks = kind, runtime.fallbacks "xla"
  sum_up(r)
  return setmetatable(r, Report)
end

local function unknown(_, name)
  errors.blame("xla: there is no '%s'%s", tostring(name),
    errors.in_place_of(name, "xla", tree.keys(xla)))
end

return setmetatable(strict_arity.all(xla), { __index = unknown })
