--- stdlib/trainer/saving/leftovers.lua: removes what runs that were killed have left: files that
--- they were writing (io/saving.c), and locks of names that they had taken (files/CheckpointIO).
--
-- A save removes those of its own folder. A run that is resumed writes in a folder of its own, and
-- each kill would leave a checkpoint in that of the run before.
local c = require "ltrain.c"

local leftovers = {}

local process <const> = c.runtime.process

-- A lock that a process holds is left to it.
local function remove_lock(path)
  local lock <close> = process.lock(path) or nil
  if lock then c.io.remove(path) end
end

--- Of a list of folders; what cannot be removed stays.
function leftovers.remove(folders)
  for _, folder in ipairs(folders) do
    c.io.remove_stale(folder)
    for _, name in ipairs(c.io.list_folder(folder) or {}) do
      if name:find "^%..*%.ckpt%.lock$" then remove_lock(folder .. "/" .. name) end
    end
  end
end

return leftovers
