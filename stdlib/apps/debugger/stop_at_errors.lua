--- stdlib/apps/debugger/stop_at_errors.lua: the prompt where an error was raised that ends the
--- script.
local c = require "ltrain.c"
local frames = require "ltrain.apps.debugger.frames"
local interrupt = require "ltrain.core.interrupt"
local prompt = require "ltrain.apps.debugger.prompt"
local remedies = require "ltrain.core.lua_error_hints"

local shown -- the error that the prompt showed last: further out it is not shown again

-- Whether an error has been shown: the same value, or its text with more around it.
local function is_known(value)
  if shown == nil then return false end
  if rawequal(shown, value) then return true end
  return type(shown) == "string" and type(value) == "string" and value:find(shown, 1, true) ~= nil
end

-- Whether it is what all ranks fail with, because of one.
local function is_outcome(value)
  local last = c.last_error()
  return c.dist.outcome() ~= nil or last ~= nil and last.status ~= nil and last.message == value
end

-- Runs in a session, where the error was raised.
local function failed(value, thread)
  if is_known(value) or interrupt.is(value) or prompt.is_silent() then return end
  if is_outcome(value) then return end
  local host = prompt.services()
  if not host or host.stopped() then return end
  local stop = { title = remedies(c.runtime.error_text(value)), failed = true }
  stop.threads = frames.failed_threads(thread)
  if frames.is_caught(stop.threads) then return end
  stop.frames, stop.state = frames.of(stop.threads), frames.loop_state(stop.threads)
  if #stop.frames == 0 and not stop.state then return end
  shown = value
  prompt.ask(stop, host)
end

--- From here on an error that ends the script opens the prompt before anything unwinds.
return function()
  c.runtime.frames.on_error(failed)
end
