--- stdlib/cli/protected_call.lua: calls a script under pcall, and reports its error with a
--- traceback and an exit status.
local c = require "ltrain.c"
local debug_rank = require "ltrain.dist.debug_rank"
local error_file = require "ltrain.cli.error_file"
local errors = require "ltrain.core.errors"
local overrides = require "ltrain.trainer.setup.overrides"
local traceback = require "ltrain.core.traceback"

local protected_call = {}

local USAGE <const> = 2

-- Whether an error is of an option's value that the command line gives: the Trainer refused it, or
-- what it is for.
local function is_usage(message)
  local last = c.last_error()
  local wrong = last and last.message
  if wrong and (wrong == overrides.args.wrong or wrong == debug_rank.wrong) then return true end
  if not last or message:sub(-#last.message) ~= last.message then return false end
  local of_trainer = last.op == "Trainer"
    and not last.message:find("^Trainer: unknown option") -- the script's: others do not come here
  for name in pairs(overrides.values) do
    if last.op == name or of_trainer and last.message:find("%f[%w_]" .. name .. "%f[^%w_]") then
      return true
    end
  end
  return false
end

-- Whether an error says nothing of its line: a value that has no text of its own, or an error that
-- Lua itself raises without one (a yield where nothing can).
local function lacks_line(value, message)
  if type(value) == "table" then return not (getmetatable(value) or {}).__tostring end
  return type(value) ~= "string" or message:find "^attempt to yield" ~= nil
end

-- {text =, stopped =, status =} of the error `value`; with_traceback(message) adds its stack.
local function describe(host, value, with_traceback)
  local interrupt = require "ltrain.core.interrupt"
  local message = c.runtime.error_text(value)
  local stopped = interrupt.is(value) or host.stopped()
  local status = c.runtime.status_of(value)
  if stopped then
    return { text = message, stopped = true, status = interrupt.is(value) and status or nil }
  end
  if lacks_line(value, message) then message = errors.where() .. message end
  if type(value) ~= "string" then return { text = message, stopped = false, status = status } end
  if is_usage(message) then return { text = c.last_error().message, status = USAGE } end
  return { text = with_traceback(message), status = status }
end

-- Message handler: runs where the error was raised, while the stack is still there. The value is
-- passed on as it is: what the script closes on its way out finds there what it has raised.
local function watch(host, seen)
  return function(value)
    local stack
    seen.failure = describe(host, value, function(message)
      stack = host.traceback(message, 4)
      return traceback.show(message, stack)
    end)
    seen.failure.stack, seen.value = stack, value
    c.dist.report(value) -- to the ranks that a launcher started, before anything unwinds
    return value
  end
end

local function finish(host, seen, ok, ...)
  if ok then return true, ... end
  local value = ...
  if seen.failure and rawequal(seen.value, value) then return false, seen.failure end
  return false, describe(host, value, function(message) return message end) -- out of memory
end

--- Calls f(...). Returns true and its results; or false and {text =, stopped =, stack =}: `stopped`
--- when a signal ended it, `stack` its whole traceback.
function protected_call.call(host, f, ...)
  local seen = {}
  return finish(host, seen, xpcall(f, watch(host, seen), ...))
end

--- Prints the failure; returns the exit status. Of several ranks one prints, the first failure.
function protected_call.report(host, failure)
  local outcome = c.dist.outcome()
  if outcome then
    error_file.write { text = outcome.text, rank = outcome.rank, status = outcome.status,
      stack = failure.stack }
    if c.dist.may_print() then host.complain(("ltrain: %s\n"):format(outcome.text)) end
    return outcome.status
  end
  local status = failure.status or failure.stopped and host.signal() or 1
  error_file.write { text = failure.text, rank = 0, status = status, stack = failure.stack }
  host.complain(("ltrain: %s\n"):format(failure.text))
  return status
end

return protected_call
