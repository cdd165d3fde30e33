-- stdlib/core/profiler_ranges.lua: the callback that opens a profiler range (NVTX) around each hook
-- of the Trainer.
--
-- open(name), unless it is nil, returns a to-be-closed value that ends the range (core/nvtx.lua
-- sets it).
return { open = nil }
