-- stdlib/core/given.lua: what the running step was given, for errors that want to say what it has.
--
-- Weak: an error looks at it while the step runs, and nothing lives longer for it.
return setmetatable({ batch = nil }, { __mode = "v" })
