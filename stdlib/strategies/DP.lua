--- stdlib/strategies/DP.lua: data parallel in one process: each batch is divided among several
--- devices.
--
-- Lightning's "dp", after PyTorch's DataParallel: each step of the module runs once for each
-- device, with its part of the batch (strategies/data_parallel.lua). training_step_end gets the
-- outputs of all parts; without it, the loss is their mean, weighted by samples, so that one device
-- has the same gradients. In a step of another device than the first, buffers are copies whose
-- changes are dropped. DDP, with a process for each device, is faster and has none of these rules.
local Strategy = require "ltrain.strategies.Strategy"
local config = require "ltrain.core.config"
local data_parallel = require "ltrain.strategies.data_parallel"

local DP = Strategy:extend("DP")

DP.splits_batches, DP.has_all_devices = true, true

local OPTIONS <const> = Strategy.rows()

--- DP{checkpoint_io = ..., ...}
function DP:init(options)
  self:use_parts(config.check(options, OPTIONS, "strategies.DP"))
end

--- Takes the devices that the Trainer's options name; on the CPU there are as many parts.
function DP:configure(ranks, o)
  Strategy.configure(self, ranks, o)
  self.devices = data_parallel.devices(self.accelerator, self.device_count or 1)
  self.notes = { data_parallel.note("dp", self.devices) }
end

--- Rejects deterministic = "world", whose steps run in slices of their own.
function DP:setup(trainer)
  data_parallel.check(trainer, "DP")
  Strategy.setup(self, trainer)
end

return DP
