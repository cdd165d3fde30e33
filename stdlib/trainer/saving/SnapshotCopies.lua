--- stdlib/trainer/saving/SnapshotCopies.lua: copies of each rank's part of a snapshot on another
--- host, so that the state survives the loss of one.
--
-- A rank sends its part to the rank of the same place on the next host, and keeps that of the one
-- before, while training goes on. They are messages of a group of their own: those of the script
-- do not come between.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dist = require "ltrain.dist"
local snapshot_slots = require "ltrain.trainer.saving.snapshot_slots"

local SnapshotCopies = class.extend(nil, "SnapshotCopies")

--- SnapshotCopies(slots, leaders): `leaders`: the first rank of each host, two or more. All ranks
--- call it.
function SnapshotCopies:init(slots, leaders)
  local hosts, size, rank = #leaders, dist.world_size(), dist.rank()
  local each = size // hosts
  self.slots, self.begun = slots, false
  for i, first in ipairs(leaders) do
    if first ~= (i - 1) * each or size % hosts ~= 0 then
      self.refusal = "no copies of snapshots on other hosts: these have different numbers of ranks"
      return
    end
  end
  self.to, self.from = (rank + each) % size, (rank - each) % size
  self.group = snapshot_slots.group_of(true)
end

--- Sends the part in the slot with this header, of a snapshot that is whole here; false: there is
--- none. All ranks call it after the same batch.
function SnapshotCopies:begin(header)
  if self.refusal then return end
  local fd, stored
  if header then fd, stored = self.slots:find(header, header.part) end
  local bytes = fd and c.io.slot_bytes(fd, stored)
  local message = bytes and { header = stored, bytes = bytes } or {}
  self.begun = { self.group:send(message, self.to, { async = true }),
    self.group:recv(self.from, { async = true }) }
end

--- Waits until what was begun is complete; true, or nil and why this rank has no copy.
function SnapshotCopies:settle()
  local begun = self.begun
  self.begun = false
  if not begun then return true end
  begun[1]:wait()
  local message = begun[2]:wait()
  if not message.header then return true end
  return c.io.put_slot(self.slots:next(true), message.header, message.bytes)
end

--- The same if it is complete already.
function SnapshotCopies:poll()
  if not self.begun or not (self.begun[1]:test() and self.begun[2]:test()) then return true end
  return self:settle()
end

return SnapshotCopies
