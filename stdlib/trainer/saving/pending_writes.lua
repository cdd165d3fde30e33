--- stdlib/trainer/saving/pending_writes.lua: checkpoints that are still being written by a helper
--- thread.
--
-- A checkpoint of a device is copied to the host behind the step that asked for it, and written by
-- a helper thread; the fit continues. What follows a file (its callbacks, the removal of older
-- ones) comes between batches, when it is complete. A fit does not end before its files are.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local pending_writes = {}

local MOST <const> = 2 -- copies that are held at a time

-- Waits for the first file, and does what follows it. `briefly`: other ranks may be gone.
local function finish(state, briefly)
  local entry = table.remove(state.pending_writes, 1)
  local saving = entry.saving
  local _ <close> = c.dist.span() -- the others may wait for rank 0, which waits for their files
  local ok, message = saving[briefly and saving.wait_briefly and "wait_briefly" or "wait"](saving)
  if not ok then errors.blame("save_checkpoint: %s", message) end
  for _, after in ipairs(entry.after) do after() end
end

--- A file that is on its way, and the list of functions that follow it.
function pending_writes.add(state, saving, after)
  state.pending_writes = state.pending_writes or {}
  table.insert(state.pending_writes, { saving = saving, after = after })
  while #state.pending_writes > MOST do finish(state) end
end

--- Between batches: what follows the files that are whole. Raises when one could not be written.
function pending_writes.poll(state)
  while state.pending_writes[1] and state.pending_writes[1].saving:done() do finish(state) end
  if #state.pending_writes == 0 then state.pending_writes = false end
end

--- Waits for all files. Raises when one could not be written.
function pending_writes.settle(state)
  while state.pending_writes and state.pending_writes[1] do finish(state) end
  state.pending_writes = false
end

--- The same where an error is on its way already: returns the first message.
function pending_writes.leave(state)
  local first
  while state.pending_writes and state.pending_writes[1] do
    local ok, message = pcall(finish, state, true)
    if not ok then first = first or tostring(message) end
  end
  state.pending_writes = false
  return first
end

return pending_writes
