-- spec/build/shell.lua: commands of the shell, for specs of builds.
local child = require "spec.cli.child"

local shell = {}

--- Runs a command; returns its exit status and all that it printed.
function shell.run(command, ...)
  local pipe <close> = assert(io.popen(("{ %s\n} 2>&1; echo \"status $?\""):format(
    command:format(...))))
  local out, status = pipe:read("a"):match("^(.-)status (%d+)\n$")
  return tonumber(status), out
end

--- The same, for a command that must succeed; returns what it printed.
function shell.need(command, ...)
  local status, out = shell.run(command, ...)
  assert(status == 0, out)
  return out
end

--- A new project: its folder, with CMakeLists.txt.
function shell.project(text)
  local folder = child.folder()
  child.write(folder .. "/CMakeLists.txt", text)
  return folder
end

return shell
