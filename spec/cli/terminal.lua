-- spec/cli/terminal.lua: runs `ltrain` on a terminal by a plan: spec/cli/terminal.c.
local child = require "spec.cli.child"

local terminal = {}

local PROGRAM <const> = (os.getenv "LT_BUILD" or "build") .. "/spec/c/terminal"

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

--- Follows the plan (lines: see, gone, send, size, screen, colours, end). Options: args, a text;
--- columns, rows; env; dir; folder, where the history is; program, another than ltrain. Returns the
--- screens by their names, and the exit status; nil where there are no pseudo-terminals.
function terminal.run(plan, options)
  options = options or {}
  local folder = options.folder or child.folder()
  local env = { XDG_STATE_HOME = folder, TERM = "xterm", LC_ALL = "C.UTF-8", NO_COLOR = "" }
  for name, value in pairs(options.env or {}) do env[name] = value end
  local words = {}
  for name, value in pairs(env) do words[#words + 1] = name .. "=" .. quote(value) end
  local command = ("exec env --default-signal=INT %s %s %d %d %s %s"):format(
    table.concat(words, " "), quote(PROGRAM), options.columns or 80, options.rows or 40,
    options.program or "ltrain", options.args or "")
  local _, out = child.shell(("%s <<'PLAN'\n%s\nPLAN"):format(command, plan),
    { dir = options.dir })
  if not options.folder then child.remove(folder) end
  local screens = {}
  for name, text in out:gmatch "%-%-%- ([%w_]+)\n(.-)\n?%-%-%-\n" do screens[name] = text end
  if out == "" then return nil end
  assert(not out:find("--- never", 1, true), out)
  return screens, tonumber(out:match "%-%-%- exit (%d+)")
end

return terminal
