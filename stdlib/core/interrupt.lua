--- stdlib/core/interrupt.lua: Ctrl-C (SIGINT) in the loops.
--
-- The signal handler only counts. The loops look at the count between batches, save, and raise the
-- value made here; whoever owns the process turns it into exit code 130. What comes before the
-- first batch, and reading a batch, may take long and changes nothing that is saved: there the
-- script ends at its next line.
local c = require "ltrain.c"

local interrupt = {
  statuses = {}, -- by the number of a signal: the exit status of a script that it ends (128 + n)
}

local meta = { __name = "ltrain.Interrupt" }
local allowed = false -- or true, or a function that saves
local raised -- the interrupt that is on its way through the script
local acted -- the number of the last signal that was acted on

function meta.__tostring(self)
  if self.text then return self.text end
  if self.path then return "interrupted: saved " .. self.path end
  return (self.where or "") .. "interrupted"
end

--- Whether Ctrl-C was pressed and nobody has acted on it, and the number of the signal (0: none).
function interrupt.pending()
  local count, signal = c.runtime.interrupted()
  return count > 0, count > 0 and signal or 0
end

--- Whether the signal of that number has come, acted on or not.
function interrupt.received(number)
  local _, signal = interrupt.pending()
  return signal == number or acted == number
end

--- As if Ctrl-C had been pressed.
function interrupt.ask() c.runtime.interrupt() end

-- It is acted on.
local function clear(signal)
  local pending, number = interrupt.pending()
  acted = signal or pending and number or acted
  c.runtime.clear_interrupt()
end

--- Raises the interrupt; `path` is where the state of the run was saved, or nil; `signal` the
--- number of the signal that several ranks have agreed on.
function interrupt.raise(path, signal)
  local _, number = interrupt.pending()
  clear(signal)
  local status = interrupt.statuses[signal or number]
  error(setmetatable({ path = path, signal = signal, status = status }, meta), 0)
end

--- Raises the one that ended ranks which were forked here: {text =, status =}. `own`: what was
--- raised in this process, if it was.
function interrupt.raise_of_ranks(outcome, own)
  local path = interrupt.is(own) and own.path or nil
  error(setmetatable({ path = path, text = outcome.text, signal = outcome.status - 128 }, meta), 0)
end

--- Raises the one of a SIGTERM that came where no loop could act on it.
function interrupt.terminate()
  error(setmetatable({ text = "terminated", signal = 15 }, meta), 0)
end

--- Whether an error value is one.
function interrupt.is(value) return getmetatable(value) == meta end

--- From here on the script ends at its next line; before that save() (optional) gives the path of
--- what it saved, or nil.
function interrupt.allow(save)
  if interrupt.pending() then interrupt.raise(save and save()) end
  allowed = save or true
end

--- From here on it does not. `err` is what ended the part that was allowed to end; without one, an
--- interrupt that the script has caught continues.
function interrupt.forbid(err)
  local value = raised
  allowed, raised = false, nil
  if value then
    clear()
    if err == nil then error(value, 0) end
  end
end

--- The handler asks, at a line ("model.lua:7: ") of a chunk ("@model.lua"): the value to raise,
--- true to be asked at the next line (this one is ours, or of no Lua), nil to be left alone. Saving
--- comes before raising, because the text is taken where the error is raised.
function interrupt.at_line(source, where)
  if not allowed then return nil end
  if source:find "^=ltrain" or source == "=[C]" then return true end
  local save = allowed
  allowed = false
  raised = setmetatable({ where = where }, meta)
  if save ~= true then raised.path = save() end
  return raised
end

--- While the library waits, in place of a line of the script: ends it if it may end here.
function interrupt.at_wait()
  if not (allowed and interrupt.pending()) then return end
  error(interrupt.at_line("", nil), 0)
end

return interrupt
