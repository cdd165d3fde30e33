-- stdlib/core/together.lua: whether all ranks of a Trainer run what runs now.
--
-- The loops say so when they call a hook that no rank leaves out; there, and only there, a metric
-- may use collectives without an option that asks for it.

local together = {}

local now = false

function together.set(on) now = on or false end

--- Whether all ranks run the hook that runs now.
function together.now() return now end

return together
