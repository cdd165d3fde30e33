--- stdlib/dist/Handle.lua: the handle of an asynchronous collective (`async = true`).
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local d = c.dist

local Handle = class.extend(nil, "Handle")

-- `done` makes the result of what came; nil: it is the result.
function Handle:init(work, done)
  self._work, self._done = work, done
end

--- Waits until it is complete on this rank; returns what the call without `async` would return. May
--- be called several times.
function Handle:wait()
  if self._work then
    local result = d.wait(self._work)
    if self._done then result = self._done(result) end
    self._work, self._done, self._result = nil, nil, result
  end
  return self._result
end

--- Returns whether wait() would return at once. Never blocks; makes progress on the transport.
function Handle:test()
  return self._work == nil or d.test(self._work)
end

return Handle
