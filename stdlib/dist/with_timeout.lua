--- stdlib/dist/with_timeout.lua: changes the collective timeout of running ranks for the duration
--- of a scope.
local c = require "ltrain.c"

--- Sets the seconds until a late or silent rank ends the job, until the result is closed; nil
--- leaves them as they are.
return function(seconds)
  local before = seconds and c.dist.set_timeout(seconds)
  return setmetatable({}, { __close = function()
    if before then c.dist.set_timeout(before) end
  end })
end
