--- stdlib/apps/dashboard/time_slices.lua: runs long handlers as coroutines in time slices: the
--- server has one thread, and answers other requests in between.
--
-- A handler runs in a coroutine. What may be long, a list of all metrics, calls pause() for each
-- part of it.
local c = require "ltrain.c"

local time_slices = {}

local SECONDS <const> = 0.02 -- of a piece

local ends -- when the piece that runs is to end, or nil

--- Ends the piece when it has taken long enough.
function time_slices.pause()
  if ends and c.runtime.clock() > ends and coroutine.isyieldable() then coroutine.yield() end
end

--- A piece of a coroutine: whether it has ended, and as pcall what it came to.
function time_slices.run(thread)
  ends = c.runtime.clock() + SECONDS
  local ok, failure = coroutine.resume(thread)
  ends = nil
  return not ok or coroutine.status(thread) == "dead", ok, failure
end

return time_slices
