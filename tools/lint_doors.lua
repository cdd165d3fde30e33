-- tools/lint_doors.lua: what may be done at one place only, because that place takes care: texts
-- reach the terminal through what escapes them (base/printable), files of others are opened by what
-- refuses pipes and devices (io/file.h).
--
-- Part of tools/lint_tree.lua. What is read is the text without comments and strings.

-- { folders, ending, names, what is wrong, files that may }
local DOORS <const> = {
  { "stdlib", "lua", { "write_stderr", "write_stdout" }, "console.say and host.write print texts", {
    "stdlib/core/console.lua", -- escapes; the progress bar's own codes
    "stdlib/apps/debugger/prompt.lua", -- clears a line
  } },
  { "stdlib", "lua", { "host%.paint" }, "colours are for charts and the prompt", {
    "stdlib/apps/runs/plot.lua", "stdlib/apps/prompt/session.lua",
  } },
  { "lua runtime", "c", { "fputs", "fprintf", "fwrite", "puts", "printf" },
    "lt_complain prints texts", {
    "lua/apps/editor.c", "lua/apps/editor_display.c", "lua/apps/prompt_input.c",
    "lua/cli/main.c", "lua/cli/report.c", "lua/cli/services.c", "lua/cli/stock_lua.c",
  } },
  { "lua runtime", "c", { "open", "fopen", "openat" }, "lt_file_open opens files of others", {
    "lua/host/isolate/seccomp.c",
    "runtime/io/file.c", "runtime/io/confined_files.c", "runtime/io/atomic_save.c",
    "runtime/io/overlay.c",
    "runtime/base/cores.c", "runtime/base/cpu_load.c", "lua/bind/system/proc.c", -- /proc and /sys
    "runtime/launch/fork_safety.c", "runtime/launch/join.c", "runtime/launch/launcher.c",
    "runtime/comm/ucx/worker.c",
    "runtime/comm/ucx/file.c", "runtime/xla/cache.c", "runtime/xla/identity.c", -- of backends,
    -- which link nothing of ltrain
    -- /dev/null:
    "runtime/launch/child.c", "lua/bind/system/child.c", "lua/bind/system/guard_process.c",
    "runtime/launch/failure_files.c", "runtime/launch/worker_fork.c", "runtime/io/inbox.c",
    "lua/bind/system/jobs.c", "lua/apps/history.c", -- own files, with flags of their own
    "lua/host/install.c", -- the library's chunks
  } },
}

local function bare(text, ending)
  local function blank(s) return (s:gsub("[^\n]", " ")) end
  text = text:gsub('"[^"\n]*"', blank)
  if ending == "lua" then return (text:gsub("%-%-[^\n]*", blank)) end
  return (text:gsub("/%*.-%*/", blank):gsub("//[^\n]*", blank))
end

-- Of C only calls count, and none through a table of functions.
local function uses(line, name, ending)
  local from, to = line:find("%f[%w_]" .. name .. "%f[^%w_]")
  return from and (ending == "lua"
    or line:find("^%s*%(", to + 1) and not line:sub(1, from - 1):find "[>.]$")
end

local function check_file(fail, path, door)
  local file <close> = assert(io.open(path, "rb"))
  local number = 0
  for line in (bare(file:read "a", door[2]) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    for _, name in ipairs(door[3]) do
      if uses(line, name, door[2]) then
        fail("%s:%d: %s: %s", path, number, name:gsub("%%", ""), door[4])
      end
    end
  end
end

return function(fail)
  for _, door in ipairs(DOORS) do
    local may = {}
    for _, path in ipairs(door[5]) do may[path] = true end
    local pipe <close> = assert(io.popen(("find %s -name '*.%s' 2>/dev/null | sort"):format(
      door[1], door[2])))
    for path in pipe:lines() do
      if not may[path] then check_file(fail, path, door) end
    end
  end
end
