--- stdlib/elastic/snapshot_memory.lua: memory files for the snapshots of a host's ranks, which
--- outlive the ranks.
--
-- The launcher makes them for its job, more when its host gets more ranks, and each of its ranks
-- inherits all of them: a rank writes its own, and after a restart reads those of the others on its
-- host. Each rank has four: two for its snapshots in turn, so that one is whole while the other is
-- written, and two for copies of what a rank of another host has. Empty ones take no memory. They
-- end with the launcher.
local c = require "ltrain.c"

local snapshot_memory = {}

local STEP_BITS <const> = 40
local EACH <const> = 4 -- files of a rank; trainer/saving/snapshot_slots.lua reads them so

local Memory <const> = {}
Memory.__index = Memory

--- Makes the files of so many ranks; nil and the reason.
function snapshot_memory.new(local_ranks)
  local memory <const> = setmetatable({ fds = {} }, Memory)
  local grown <const>, message = memory:grow(local_ranks)
  if not grown then return nil, message end
  return memory
end

--- Sees to it that there are files for so many ranks; nil and the reason.
function Memory:grow(local_ranks)
  for k = #self.fds + 1, local_ranks * EACH do
    local fd, message = c.io.new_slot()
    if not fd then return nil, message end
    self.fds[k] = fd
  end
  return true
end

--- What each rank of the host is started with: a list of variables, "NAME=value", and a list of the
--- descriptors that it inherits under the same numbers (c.runtime.process.start: `fds`).
--
-- LTRAIN_SNAPSHOT: the descriptors, "FD,FD,...", four for each local rank in order.
function Memory:environment()
  return { "LTRAIN_SNAPSHOT=" .. table.concat(self.fds, ",") }, self.fds
end

--- How far the job has come by these snapshots: larger where a later fit of the script, or a later
--- step of the same one, is in one of them.
function Memory:progress()
  local most = 0
  for _, fd in ipairs(self.fds) do
    local header <const> = c.io.read_slot(fd)
    if header then most = math.max(most, header.fit << STEP_BITS | header.step) end
  end
  return most
end

return snapshot_memory
