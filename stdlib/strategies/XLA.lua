--- stdlib/strategies/XLA.lua: one process trains on several devices of XLA: each batch is divided
--- among them.
--
-- The script runs once, on the whole batch, as on one device. XLA divides the program (SPMD): the
-- tensors of a batch are cut along dim 1, parameters are on every device, and the compiler inserts
-- the sums. So a loss, a metric and the statistics of batch norm are those of the whole batch.
-- Tensors that cannot be cut are on every device: the results are the same.
local Strategy = require "ltrain.strategies.Strategy"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local data_parallel = require "ltrain.strategies.data_parallel"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"
local xla = require "ltrain.core.xla"

local XLA = Strategy:extend("XLA")

XLA.has_all_devices = true
XLA.accelerator_kind = "xla"

local OPTIONS <const> = Strategy.rows {
  shard_parameters = { type = "boolean", default = false,
    doc = "parameters and the state of optimizers are divided among the devices, too" },
  debug = { type = "boolean", default = false,
    doc = "lt.xla.report() is printed at the end of each run" },
}

--- XLA{shard_parameters = true}
function XLA:init(options)
  local o = config.check(options, OPTIONS, "strategies.XLA")
  self:use_parts(o)
  self.shard_parameters, self.debug = o.shard_parameters, o.debug
end

--- Takes `devices`; "auto" and -1 are all that the plugin has.
function XLA:configure(ranks, o)
  Strategy.configure(self, ranks, o)
  if not self.accelerator.opens_all then
    errors.blame("strategies.XLA: computes on devices of XLA: write accelerator = 'xla'")
  end
  local all = o.devices == "auto" or self.device_count == -1
  self.partitions = all and 0 or self.device_count
end

--- Opens the devices, and moves the module to all of them.
function XLA:setup(trainer)
  Strategy.setup(self, trainer)
  self.trainer, self._divided = trainer, {}
  if self.partitions == 1 then return end
  trainer:note(("strategy = 'xla': %d devices compute each batch together, 1 / %d each: the "
    .. "loader's batch_size is that of all, and batch norm takes the statistics of all"):format(
    self.partitions, self.partitions))
end

--- Prints the report of a run that has used the devices.
function XLA:teardown()
  if self.debug and self.trainer then self.trainer:say(tostring(xla.report())) end
  Strategy.teardown(self)
end

-- A tensor of a batch on the devices, divided among them.
local function divided(leaf, device)
  local y = c.empty(leaf.shape, { dtype = leaf.dtype, device = device })
  c.runtime.shard(y)
  return y:copy_(leaf)
end

--- Tensors with the first size of the batch are cut along dim 1; a size that the devices do not
--- divide is reported once, and such a batch is on every device.
function XLA:batch_to_device(batch)
  local size, n = data_parallel.size_of(batch), self.partitions
  if not size or size % n ~= 0 then
    if size and n > 1 and self.trainer then
      self.trainer:note(("strategy = 'xla': %d devices do not divide batches of %d samples: each "
        .. "device computes all of such a batch"):format(n, size))
    end
    return Strategy.batch_to_device(self, batch)
  end
  local device = self.root_device
  return tree.map(batch, function(leaf)
    if not c.is_tensor(leaf) then return leaf end
    local cut = leaf.shape[1] == size and leaf.device == "cpu" and not leaf.requires_grad
    return cut and divided(leaf, device) or leaf:to(device, { non_blocking = true })
  end)
end

--- With shard_parameters each device has a part of each parameter, and the program gathers it where
--- it is used.
function XLA:setup_optimizers(optimizers)
  for _, parameter in ipairs(self.shard_parameters and self.module:parameters() or {}) do
    c.runtime.shard(parameter)
  end
  return optimizers
end

--- State that a first step has made is divided like its parameter.
function XLA:optimizer_step(optimizer, update)
  update()
  if not self.shard_parameters or self._divided[optimizer] then return end
  self._divided[optimizer] = true
  for _, slots in next, optimizer.state do
    tree.each(slots, function(leaf)
      if c.is_tensor(leaf) and leaf.device == self.root_device then c.runtime.shard(leaf) end
    end)
  end
end

return XLA
