--- stdlib/apps/debugger/prompt.lua: opens the prompt at a stop of the script, if there is one for
--- it.
--
-- It runs in a session beside the script (c.runtime.frames.session): what is drawn there moves no
-- random number of the run, and its time counts for no limit. Of several ranks one has the terminal
-- at a time; the others come in turn, or wait where they need it.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local errors = require "ltrain.core.errors"
local frames = require "ltrain.apps.debugger.frames"
local interrupt = require "ltrain.core.interrupt"
local view = require "ltrain.apps.debugger.view"

local prompt = {
  only_rank = nil, -- the one of several ranks that stops
  is_ending = false, -- the script ends because a prompt was left so
}

local input_ended = false
local refused = {} -- set of the places where there was no prompt

--- Says, once a place, that there is no prompt.
function prompt.refuse(why)
  local where = errors.where()
  if refused[where] then return end
  refused[where] = true
  console.say_anywhere(("%sbreakpoint: %s: the script continues"):format(where, why))
end

--- The functions of the program's prompt; nil, and why there is none, which was not said yet.
function prompt.services()
  if c.dist.is_worker() then
    return nil, "a worker of a DataLoader has no terminal: num_workers = 0 reads where there is one"
  end
  if not c.runtime.services then return nil, "no prompt in this program: it is part of `ltrain`" end
  if input_ended then return nil end -- that was said
  return c.runtime.services()
end

--- To be called in a session: the prompt, when this rank has its turn. Returns what ended it.
function prompt.ask(stop, host)
  if not c.dist.take_terminal() then return "failed" end
  local _ <close> = setmetatable({}, {
    __close = function() c.dist.give_terminal(stop.failed) end,
  })
  if c.dist.rank() > 0 and console.is_terminal() then
    c.runtime.write_stderr "\r\27[K" -- the progress bar of rank 0
  end
  local result
  console.past(function() result = view.open(stop, host) end)
  if result == nil and host.signal() == 143 then return "terminated" end
  if result == nil and not host.tty then
    input_ended = true
    host.complain(("\nltrain: %sstandard input has ended: the script %s\n"):format(
      c.dist.world().ranks > 1 and ("rank %d: "):format(c.dist.rank()) or "",
      stop.failed and "fails as it would" or "continues"))
  end
  return result
end

--- Opens the prompt at `stop`: {title =, failed = with an error, threads =, frames =, state =}.
function prompt.open(stop, host)
  local result = c.runtime.frames.session(prompt.ask, stop, host)
  if result == "quit" and not stop.failed then
    prompt.is_ending = true
    error(errors.where() .. "ended at the debugger's prompt", 0)
  elseif result == "terminated" and not stop.failed then
    prompt.is_ending = true
    if not frames.loop_state(stop.threads) then interrupt.terminate() end
    host.interrupt "TERM" -- the loop saves, and ends
  end
end

--- Whether nothing stops here: another rank is debugged, or the script is ending.
function prompt.is_silent()
  local only = prompt.only_rank
  return prompt.is_ending or only ~= nil and c.dist.rank() ~= only
end

return prompt
