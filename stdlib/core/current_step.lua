-- stdlib/core/current_step.lua: the batch of the step that is running, for error messages that list
-- its fields.
--
-- Weak: errors read it while the step runs, and it keeps no batch alive.
return setmetatable({ batch = nil }, { __mode = "v" })
