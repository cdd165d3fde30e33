--- stdlib/strategies/SingleDevice.lua: one process, one device.
local Strategy = require "ltrain.strategies.Strategy"
local config = require "ltrain.core.config"

local SingleDevice = Strategy:extend("SingleDevice")

local OPTIONS <const> = Strategy.rows {
  device = { type = "string",
    doc = "device of the module and of batches; by default the accelerator's" },
}

--- SingleDevice{device = "cpu"}
function SingleDevice:init(options)
  local o = config.check(options, OPTIONS, "strategies.SingleDevice")
  self:use_parts(o)
  self.device = o.device
end

function SingleDevice:configure(ranks, o)
  Strategy.configure(self, ranks, o)
  if self.device then self.root_device = self.device end
end

return SingleDevice
