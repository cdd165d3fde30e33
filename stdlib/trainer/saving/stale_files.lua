--- stdlib/trainer/saving/stale_files.lua: removes the temporary files (io/atomic_save.c) and name
--- locks (files/CheckpointIO) that killed runs left behind.
--
-- A save removes those of its own folder. A run that is resumed writes in a folder of its own, and
-- each kill would leave a checkpoint in that of the run before.
local c = require "ltrain.c"

local stale_files = {}

local process <const> = c.runtime.process

-- A lock that a process holds is left to it.
local function remove_lock(path)
  local lock <close> = process.lock(path) or nil
  if lock then c.io.remove(path) end
end

--- Of a list of folders; what cannot be removed stays.
function stale_files.remove(folders)
  for _, folder in ipairs(folders) do
    c.io.remove_stale(folder)
    for _, name in ipairs(c.io.list_folder(folder) or {}) do
      if name:find "^%..*%.ckpt%.lock$" then remove_lock(folder .. "/" .. name) end
    end
  end
end

return stale_files
