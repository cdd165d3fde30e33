--- stdlib/apps/prompt/evaluation.lua: evaluates an entry under pcall: an error becomes a message,
--- and the session continues.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local interrupt = require "ltrain.core.interrupt"
local traceback = require "ltrain.core.traceback"

local evaluation = {}

-- Whether an error says nothing of its line: a value that has no text of its own, or an error that
-- Lua itself raises without one (a yield where nothing can).
local function lacks_line(value, message)
  if type(value) == "table" then return not (getmetatable(value) or {}).__tostring end
  return type(value) ~= "string" or message:find "^attempt to yield" ~= nil
end

-- What is kept of the error `value`; with_stack: while its stack is still there.
local function describe(host, value, with_stack)
  local message = c.runtime.error_text(value)
  local stopped = interrupt.is(value) or host.stopped()
  if not stopped and lacks_line(value, message) then message = errors.where() .. message end
  local stack = with_stack and traceback.whole(message, host.traceback(message, 3)) or message
  local text = not stopped and type(value) == "string" and traceback.show(message, stack)
  return { value = value, text = text or message, stack = stack, stopped = stopped }
end

local function finish(host, caught, ok, ...)
  if ok then return true, ... end
  local value = ...
  if caught.failure and rawequal(caught.failure.value, value) then return false, caught.failure end
  return false, describe(host, value, false) -- out of memory
end

--- Calls f(...). Returns true and its results; or false and { value =, text = as it is printed,
--- stack = all frames, stopped = whether Ctrl-C ended it }.
function evaluation.call(host, f, ...)
  local caught = {}
  return finish(host, caught, xpcall(f, function(value)
    caught.failure = describe(host, value, true)
    return value
  end, ...))
end

--- After an entry: a Ctrl-C that nothing has acted on is not for the next.
evaluation.forget_interrupt = c.runtime.clear_interrupt

return evaluation
