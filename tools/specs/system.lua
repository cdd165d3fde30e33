-- tools/specs/system.lua: files, the shell and the clocks of the machine, for stock Lua
-- (tools/run_specs.lua).
local JIFFIES <const> = 100 -- per second, in /proc/stat

local system = {}

--- A word of the shell that is this text.
function system.quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

--- The bytes of a file; "" where it is not there.
function system.read_all(path)
  local file = io.open(path, "rb")
  if not file then return "" end
  local text = file:read("a")
  file:close()
  return text
end

--- Writes a file.
function system.write_all(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

--- Whether the file or folder is there.
function system.is_there(path)
  return os.execute("test -e " .. system.quote(path)) == true
end

--- The lines that a command prints, without empty ones.
function system.lines_of(command)
  local lines = {}
  local pipe <close> = assert(io.popen(command))
  for line in pipe:lines() do
    if line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

--- Seconds since the machine started: stock Lua has no clock finer than os.time.
function system.now()
  local text = system.read_all("/proc/uptime")
  return tonumber(text:match("^%S+")) or os.time()
end

--- Seconds that the cores were idle since the machine started, summed (0 where /proc does not say),
--- and the number of cores.
function system.idle_seconds()
  local text = system.read_all "/proc/stat"
  local idle, waited = text:match "^cpu +%d+ %d+ %d+ (%d+) (%d+)"
  local _, cores = text:gsub("\ncpu%d", "")
  return idle and (idle + waited) / JIFFIES or 0, cores
end

return system
