--- stdlib/dist/Handle.lua: a collective under way, as `async = true` gives it.
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local d = c.dist

local Handle = class.extend(nil, "Handle")

-- `done` makes the result of what came; nil: it is the result.
function Handle:init(work, done)
  self._work, self._done = work, done
end

--- Waits until it is done on this rank; returns what the call without `async` would have returned,
--- the same again at each further call.
function Handle:wait()
  if self._work then
    local result = d.wait(self._work)
    if self._done then result = self._done(result) end
    self._work, self._done, self._result = nil, nil, result
  end
  return self._result
end

--- Whether wait() would return at once. Never blocks, and gets the transport on.
function Handle:test()
  return self._work == nil or d.test(self._work)
end

return Handle
