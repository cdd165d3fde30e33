-- spec/cuda/counts.lua: counts(): {launches, threads, copies, direct, waits, messages} of the fake
-- runtime since they were asked for last (direct: copies straight between devices, messages: sent
-- by the fake NCCL), all `calls` that can fail, `contexts` (bits of devices); of the operation
-- with the narrowest grid its name and bytes a thread {narrowest, bytes_a_thread}; false on a GPU.
local folder <const> = (os.getenv "LTRAIN_BACKENDS" or ""):gsub("/backends$", "")
local open <const> = package.loadlib(folder .. "/counts.so", "luaopen_counts")

return open and open() or false
