--- stdlib/strategies/SingleDevice.lua: one process, one device.
local Strategy = require "ltrain.core.Strategy"
local config = require "ltrain.core.config"
local tree = require "ltrain.core.tree"

local SingleDevice = Strategy:extend("SingleDevice")

local OPTIONS <const> = {
  device = { type = "string", default = "cpu", doc = "where module and batches go" },
}

--- SingleDevice{device = "cpu"}
function SingleDevice:init(options)
  self.root_device = config.check(options, OPTIONS, "strategies.SingleDevice").device
  -- On the host a batch is where it belongs.
  self.transfers = self.root_device ~= "cpu"
end

--- The module is there and loaded: parameters move only when they are elsewhere, because moving
-- makes new ones.
function SingleDevice:setup(trainer, module)
  if module.device ~= self.root_device then module:to(self.root_device) end
end

--- The batch with its tensors on the device.
function SingleDevice:batch_to_device(batch)
  local device = self.root_device
  return tree.map(batch, function(leaf)
    return type(leaf) == "userdata" and leaf:to(device) or leaf
  end)
end

return SingleDevice
