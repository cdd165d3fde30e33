--- stdlib/apps/check/sandbox.lua: replaces functions with side effects (files, processes, os.exit)
--- while a script is checked.
--
-- Files that it writes, by Lua's io or through the library, lie in a folder of their own until the
-- end (lua/bind/io/overlay.c); it starts no programs and no ranks, and cannot end the process.
local c = require "ltrain.c"
local debugger = require "ltrain.apps.debugger"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"

local sandbox = {
  stopped = nil, -- why the script was ended: what it raises afterwards follows from that
}

local shadow <const> = c.runtime.shadow

-- Raised to end a script where it is; a pcall of the script may catch it, the next one comes.
local STOP <const> = { __tostring = function(self) return self.text end }

--- Ends the script at its line; `text` says what is therefore not examined.
function sandbox.stop(text)
  sandbox.stopped = text
  error(setmetatable({ text = text, where = errors.where() }, STOP), 0)
end

--- Whether an error is such an end.
function sandbox.is_stop(value) return getmetatable(value) == STOP end

-- Removes a folder with all that is in it.
local function remove(path)
  if c.io.kind(path) == "folder" then
    for _, name in ipairs(c.io.list_folder(path) or {}) do remove(path .. "/" .. name) end
  end
  c.io.remove(path)
end

-- A new folder below the one for temporary files; those of processes that were killed go.
local function new_folder()
  local base, name = c.runtime.getenv "TMPDIR" or "/tmp", "ltrain_check_"
  for _, entry in ipairs(c.io.list_folder(base) or {}) do
    local pid = entry:match("^" .. name .. "(%d+)$")
    if pid and c.io.kind "/proc/self" and not c.io.kind("/proc/" .. pid) then
      remove(base .. "/" .. entry)
    end
  end
  local path = ("%s/%s%d"):format(base, name, c.runtime.pid())
  local ok, message = c.io.make_folder(path)
  return ok and path, message
end

-- io's functions that open files, on the paths that the shadow has for them.
local function file_functions(g)
  local io, os = g.io, g.os
  local plain = { open = io.open, lines = io.lines, input = io.input, output = io.output,
    loadfile = g.loadfile, dofile = g.dofile }
  local function at(path, mode) return shadow.path(path, mode or "r") end
  function io.open(path, mode, ...)
    if type(path) ~= "string" or mode ~= nil and type(mode) ~= "string" then
      return plain.open(path, mode, ...)
    end
    local real, message, code = at(path, mode)
    if not real then return nil, message, code end
    local file, why, number = plain.open(real, mode, ...)
    if not file and type(why) == "string" then
      why = why:gsub("^.-: ", function() return path .. ": " end)
    end
    return file, why, number
  end
  function io.lines(path, ...)
    return plain.lines(type(path) == "string" and at(path) or path, ...)
  end
  function io.input(file) return plain.input(type(file) == "string" and at(file) or file) end
  function io.output(file)
    return plain.output(type(file) == "string" and at(file, "w") or file)
  end
  function g.loadfile(path, ...)
    return plain.loadfile(type(path) == "string" and at(path) or path, ...)
  end
  function g.dofile(path) return plain.dofile(type(path) == "string" and at(path) or path) end
  function os.remove(path) return shadow.remove(path) end
  function os.rename(from, to) return shadow.rename(from, to) end
end

local function process_functions(context, folder)
  local g, names = context.host.globals, 0
  function g.os.tmpname()
    names = names + 1
    local path = ("%s/tmp_%d"):format(folder, names)
    c.io.write_file(path, "")
    return path
  end
  function g.os.exit(code)
    sandbox.stop(("os.exit(%s) ended the script: the rest of the script was not run"):format(
      code == nil and "" or tostring(code)))
  end
  function g.os.execute(command)
    if command == nil then return true end
    shadow.make_folders()
    if not tostring(command):find "^%s*mkdir%s[^;&|]*$" then
      context.report:skip("a check starts no programs: os.execute was not run", errors.where())
    end
    return true, "exit", 0
  end
  function g.io.popen(command)
    sandbox.stop(("a check starts no programs: %s: the rest of the script was not run"):format(
      errors.show(command)))
  end
  dist.launch = function()
    sandbox.stop "lt.dist.launch: a check runs one process: its function was not run"
  end
end

-- Puts back what fields of a table were.
local function keep(kept, t, ...)
  for _, name in ipairs { ... } do kept[#kept + 1] = { t, name, t[name] } end
end

local function no_stdin(g)
  local stop = function()
    sandbox.stop "the script reads its standard input: the rest of the script was not run"
  end
  g.io.read = stop
end

--- Opens it for the script of `context`; to be closed. nil and a message where no files can be.
function sandbox.open(context)
  local folder, message = new_folder()
  if not folder then return nil, message end
  local kept, g = {}, context.host.globals
  keep(kept, g, "loadfile", "dofile", "print")
  keep(kept, g.io, "open", "lines", "input", "output", "popen", "read")
  keep(kept, g.os, "remove", "rename", "tmpname", "exit", "execute")
  keep(kept, dist, "launch")
  keep(kept, debugger, "breakpoint")
  debugger.breakpoint = function() end
  local ok, why = shadow.open(folder)
  if not ok then return nil, why end
  file_functions(g)
  process_functions(context, folder)
  no_stdin(g)
  g.io.output(g.io.stderr)
  return setmetatable({}, { __close = function()
    for _, row in ipairs(kept) do row[1][row[2]] = row[3] end
    g.io.output(g.io.stdout)
    shadow.close()
    remove(folder)
  end })
end

return sandbox
