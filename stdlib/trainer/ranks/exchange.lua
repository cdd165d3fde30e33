--- stdlib/trainer/ranks/exchange.lua: runs a function as a named collective of all ranks: the
--- watchdog reports a rank that waits in it by that name.
--
-- It is among all of them, also in a step that some have no sample for, and has a name, which the
-- a rank that is in it is reported to others that wait.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local function leave(outer, ...)
  c.dist.exchange()
  collectives.use(outer)
  return ...
end

--- Runs fn(...) as the exchange `what`; returns what it returns.
return function(what, fn, ...)
  local outer = collectives.use(nil)
  c.dist.exchange(what)
  return leave(outer, fn(...))
end
