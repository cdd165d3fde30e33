--- stdlib/trainer/saving/pending_writes.lua: checkpoints of a device that are not in their files yet.
--
-- Such a checkpoint is copied to the host behind the step that asked for it, and written by a
-- helper thread; the fit goes on. What follows a file (its callbacks, the removal of older ones)
-- comes between batches, when it is whole. A fit does not end before its files are.
local errors = require "ltrain.core.errors"

local writing = {}

local MOST <const> = 2 -- copies that are held at a time

-- Waits for the first file, and does what follows it.
local function finish(state)
  local entry = table.remove(state.writing, 1)
  local ok, message = entry.saving:wait()
  if not ok then errors.blame("save_checkpoint: %s", message) end
  for _, after in ipairs(entry.after) do after() end
end

--- A file that is on its way, and the list of functions that follow it.
function writing.add(state, saving, after)
  state.writing = state.writing or {}
  table.insert(state.writing, { saving = saving, after = after })
  while #state.writing > MOST do finish(state) end
end

--- Between batches: what follows the files that are whole. Raises when one could not be written.
function writing.poll(state)
  while state.writing[1] and state.writing[1].saving:done() do finish(state) end
  if #state.writing == 0 then state.writing = false end
end

--- Waits for all files. Raises when one could not be written.
function writing.settle(state)
  while state.writing and state.writing[1] do finish(state) end
  state.writing = false
end

--- The same where an error is on its way already: returns the first message.
function writing.leave(state)
  local first
  while state.writing and state.writing[1] do
    local ok, message = pcall(finish, state)
    if not ok then first = first or tostring(message) end
  end
  state.writing = false
  return first
end

return writing
