--- stdlib/apps/debugger/init.lua: stops the script, and opens a prompt in the function that runs.
--
-- How to use it, and all commands of the prompt: [Debugging a model](../guide/debugging.md).
local frames = require "ltrain.apps.debugger.frames"
local prompt = require "ltrain.apps.debugger.prompt"
local stops = require "ltrain.apps.debugger.stops"

local debugger = {}

-- The script has come to where it stops.
function stops.reached(stop)
  if prompt.is_silent() then return end
  local host, why = prompt.services()
  if not host then return why and prompt.refuse(why) end
  stop.threads = frames.threads()
  stop.frames = frames.of(stop.threads)
  prompt.open(stop, host)
end

--- Opens the debugger's prompt in the calling function, whose locals and upvalues can be read and
--- assigned by name; `:continue` continues. It may be called anywhere: in hooks, in functions that
--- they call, in coroutines. Where no prompt is possible (in a program that embeds ltrain, in stock
--- Lua, in a worker of a DataLoader, at the end of input) it prints a warning, once for each line,
--- and the script continues.
function debugger.breakpoint()
  stops.forget_step()
  stops.reached { title = "lt.breakpoint()" }
end

return debugger
