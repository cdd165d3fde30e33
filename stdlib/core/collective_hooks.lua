-- stdlib/core/collective_hooks.lua: whether the hook that is running is called on every rank, so
-- that it may use collectives.
--
-- The loops set it around hooks that no rank skips. Elsewhere a metric uses collectives only if an
-- option asks for it: ranks that skip the call would leave the others waiting.

local collective_hooks = {}

local now = false

function collective_hooks.set(on) now = on or false end

--- Whether every rank calls the hook that is running.
function collective_hooks.running() return now end

return collective_hooks
