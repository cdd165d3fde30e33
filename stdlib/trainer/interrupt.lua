--- stdlib/trainer/interrupt.lua: Ctrl-C as the loops see it.
--
-- The signal handler only counts. The loops look at the count between batches, save, and raise the
-- value made here; whoever owns the process turns it into exit code 130.
local c = require "ltrain.c"

local interrupt = {}

local meta = { __name = "ltrain.Interrupt" }

function meta.__tostring(self)
  if self.path then return "interrupted: saved " .. self.path end
  return "interrupted"
end

--- Whether Ctrl-C was pressed and nobody has acted on it.
function interrupt.pending()
  return c.runtime.interrupted() > 0
end

--- Raises the interrupt; `path` is where the state of the run was saved, or nil.
function interrupt.raise(path)
  c.runtime.clear_interrupt()
  error(setmetatable({ path = path }, meta), 0)
end

--- Whether an error value is one.
function interrupt.is(value)
  return getmetatable(value) == meta
end

return interrupt
