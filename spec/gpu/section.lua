-- spec/gpu/section.lua: what the sections of ./dev gpu use: commands under a time limit, figures,
-- verdicts.
--
-- Stock Lua or `ltrain` runs it, so that a crash of what is tested is a failed section. report.lua
-- sets `current` (the section that runs), `deadline`, `dir` (for logs), `tiny` and `lua`.
local section = {
  BUILD = os.getenv "LT_BUILD" or "build",
  current = nil, deadline = math.huge, dir = nil, tiny = false, lua = "lua5.4",
}
section.LTRAIN = os.getenv "LTRAIN" or section.BUILD .. "/ltrain"
section.BACKENDS = os.getenv "LTRAIN_BACKENDS" or section.BUILD .. "/backends"
section.EMULATED = section.BACKENDS:find("spec/cuda/backends", 1, true) ~= nil

-- A list of functions that sections.lua runs in order: {name, about, fn}.
local list = {}
section.list = list

function section.add(name, about, fn)
  list[#list + 1] = { name = name, about = about, fn = fn, values = {} }
end

function section.quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end
local quote <const> = section.quote

function section.read_all(path)
  local file = io.open(path)
  if not file then return "" end
  local text = file:read "a"
  file:close()
  return text
end

-- Seconds, that no change of the date moves.
function section.clock()
  return tonumber(section.read_all "/proc/uptime":match "^%S+") or os.time()
end

function section.line_of(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read() or ""
end

function section.is_there(command) return os.execute(command .. " >/dev/null 2>&1") == true end

function section.skip(...) error({ skipped = string.format(...) }, 0) end
function section.fail(...) error({ failed = string.format(...) }, 0) end

-- Runs a command: its exit status (124: out of time), what it printed, what it said on stderr. It
-- ends with the section's time at the latest.
function section.run(limit, command)
  local left = math.floor(section.deadline - section.clock())
  if left < 1 then section.fail("out of time before: %s", command:sub(1, 80)) end
  local log = section.dir .. "/log"
  local _, how, code = os.execute(("timeout -k 5 %d env %s >%s 2>%s.err </dev/null"):format(
    math.min(limit, left), command, quote(log), quote(log)))
  local text, said = section.read_all(log), section.read_all(log .. ".err")
  return how == "exit" and code or 128 + code, text, said
end

function section.note(name, value, unit)
  local one <const> = section.current
  one.values[#one.values + 1] = { name = name, value = value, unit = unit }
  print(("%-10s %-28s %12.5g %s"):format(one.name, name, value, unit))
end

-- Lines NAME VALUE UNIT become figures.
function section.note_lines(text)
  for name, value, unit in text:gmatch "([%w_]+) ([%d.e+-]+) ([^\n]+)" do
    if tonumber(value) then section.note(name, tonumber(value), unit) end
  end
end

-- The end of what was said, on one line.
function section.last_words(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    if not line:find "^%s" and not line:find "^stack traceback" then lines[#lines + 1] = line end
  end
  return (table.concat(lines, "; ", math.max(1, #lines - 2)):sub(-300))
end

-- A piece of spec/gpu/work.lua in a process of its own; `before`: a command that runs it.
-- Returns what it printed.
function section.work(limit, before, ...)
  local name = ...
  local status, text, said = section.run(limit, ("LUA_PATH_5_4='./?.lua;;' %s %s spec/gpu/work.lua "
    .. "%s %s %s"):format(before, quote(section.LTRAIN), name, section.tiny and "tiny" or "full",
    table.concat({ select(2, ...) }, " ")))
  section.note_lines(text)
  if status ~= 0 then section.fail("%s: status %d: %s", name, status, section.last_words(said)) end
  return text, said
end

function section.script(code)
  local path <const> = section.dir .. "/script.lua"
  local file <close> = assert(io.open(path, "w"))
  file:write(code)
  return path
end

-- A Python with PyTorch that sees a GPU; nil and why not.
function section.python()
  local tried = { os.getenv "LT_TORCH_PYTHON", (os.getenv "LT_TORCH_VENV" or section.BUILD
    .. "/venv-torch") .. "/bin/python", "python3" }
  for k = os.getenv "LT_TORCH_PYTHON" and 1 or 2, 3 do
    local ask <const> = " -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'"
    if section.is_there(quote(tried[k]) .. ask) then return tried[k] end
  end
  return nil, "no PyTorch that sees a GPU (LT_TORCH_PYTHON, LT_TORCH_VENV)"
end

function section.gpus()
  local status, text = section.run(60, quote(section.LTRAIN)
    .. " -e 'print(lt.cuda.device_count())'")
  return status == 0 and tonumber(text) or 0
end

-- The first of `names` in PATH, or in a folder of a CUDA toolkit or of one of its tools.
function section.tool(name, folders)
  local tried = { name }
  for _, home in ipairs { os.getenv "CUDA_HOME" or "/opt/cuda", "/usr/local/cuda" } do
    for _, folder in ipairs(folders) do tried[#tried + 1] = home .. "/" .. folder .. "/" .. name end
  end
  for _, path in ipairs(tried) do
    if section.is_there("command -v " .. quote(path)) then return path end
  end
  section.skip("%s is neither in PATH nor in %s", name, table.concat(tried, ", ", 2))
end

return section
