--- stdlib/trainer/exchange.lua: what all ranks do together for the loop itself.
--
-- It is among all of them, also in a step that some have no sample for, and has a name, which the
-- others are told of a rank that is in it while they wait.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"

local function leave(state, outer, ...)
  c.dist.set_hook(state.hook or "")
  collectives.use(outer)
  return ...
end

--- Runs fn(...) as the exchange `what`; returns what it returns.
return function(state, what, fn, ...)
  local outer = collectives.use(nil)
  c.dist.set_hook(what)
  return leave(state, outer, fn(...))
end
