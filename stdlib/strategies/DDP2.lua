--- stdlib/strategies/DDP2.lua: as DP within a process, as DDP between processes (Lightning's
--- "ddp2").
--
-- A rank is a machine: it divides its batch among all devices of the machine, and gradients are
-- reduced between the ranks. Several ranks of one machine divide its devices.
local DDP = require "ltrain.strategies.DDP"
local data_parallel = require "ltrain.strategies.data_parallel"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"

local DDP2 = DDP:extend("DDP2")

DDP2.splits_batches, DDP2.has_all_devices = true, true

--- Takes the devices of this machine that the Trainer's options name.
function DDP2:configure(ranks, o)
  DDP.configure(self, ranks, o)
  self.machine_devices = data_parallel.devices(self.accelerator, self.device_count or 1)
  self:take_device()
  self.option_notes = self.option_notes or self.notes or {}
  self.notes = table.move(self.option_notes, 1, #self.option_notes, 1, {})
  table.insert(self.notes, data_parallel.note("ddp2", self.devices))
end

--- Takes this rank's share of the machine's devices.
function DDP2:take_device()
  local world, all = dist.world(), self.machine_devices
  local each = #all // world.local_ranks
  if each == 0 or #all % world.local_ranks ~= 0 then
    errors.blame("strategies.DDP2: %d ranks on %s cannot share %d devices evenly: start one rank "
      .. "for each machine", world.local_ranks, world.hosts[world.rank + 1], #all)
  end
  self.devices = table.move(all, world.local_rank * each + 1, (world.local_rank + 1) * each, 1, {})
  self.root_device = self.devices[1]
end

--- Rejects deterministic = "world", whose steps run in slices of their own.
function DDP2:setup(trainer)
  data_parallel.check(trainer, "DDP2")
  DDP.setup(self, trainer)
end

return DDP2
