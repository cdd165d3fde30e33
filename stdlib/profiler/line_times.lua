--- stdlib/profiler/line_times.lua: `profiler = "advanced"`: how long lines and functions of the
--- script take, by a hook of Lua.
--
-- The time of a line is that until the next line of the script begins, or the hook of the Trainer
-- ends: what the library does in its calls is in it, the lines of the script's functions that it
-- calls are not. Of coroutines those that the script makes meanwhile are measured too.
local c = require "ltrain.c"

local line_times = {}

local Times = {}
Times.__index = Times

-- The line that runs has run until now.
local function settle(self)
  local now, at = c.runtime.clock(), self.at
  local seconds = now - self.since
  if at then at.total, at.of.total = at.total + seconds, at.of.total + seconds end
  self.at, self.since = nil, now
end

-- A function of the script, by where it is: {place =, name =, source =, total =, calls =, lines =}.
local function function_at(self, source, first)
  local place = ("%s:%d"):format(source, first)
  local found = self.functions[place]
  if not found then
    found = { place = place, source = source, total = 0, calls = 0, lines = {} }
    self.functions[place] = found
  end
  return found
end

local function on_event(self, source, first, line, name)
  local fn = function_at(self, source, first)
  if not line then
    if name == true then name = self.range end
    fn.calls, fn.name = fn.calls + 1, fn.name or name
    return
  end
  settle(self)
  local at = fn.lines[line] or { of = fn, total = 0, calls = 0 }
  fn.lines[line], self.at = at, at
  at.calls = at.calls + 1
end

--- Begins to measure this thread.
function line_times.open()
  local self = setmetatable({ functions = {}, since = 0 }, Times)
  self.on_event = function(...) on_event(self, ...) end
  self:resume()
  return self
end

--- A hook of the Trainer of this name begins, or one ends: no line of the script runs. Another hook
--- of Lua, a debugger's, stays.
function Times:resume(range)
  settle(self)
  self.range = range
  c.runtime.watch_lines(self.on_event)
end

--- Ends it.
function Times:close()
  settle(self)
  c.runtime.watch_lines(nil)
end

--- Two lists of {name, calls, total}: of functions, of lines.
function Times:rows()
  local functions, lines = {}, {}
  for _, fn in next, self.functions do
    local name = fn.name and ("%s %s"):format(fn.name, fn.place) or fn.place
    functions[#functions + 1] = { name, fn.calls, fn.total }
    for line, at in next, fn.lines do
      lines[#lines + 1] = { ("%s:%d"):format(fn.source, line), at.calls, at.total }
    end
  end
  return functions, lines
end

return line_times
