-- stdlib/nn/MaxPool2d.lua: 2D max pooling.
-- B batch, C channels, H height, W width.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local MaxPool2d = Module:extend("MaxPool2d")

local OPTIONS <const> = {
  stride = { type = "pair", min = 1,
    doc = "step between windows; by default the size of the window" },
  padding = { type = "pair", default = 0, min = 0 },
}

--- nn.MaxPool2d(2, {stride = 2})
function MaxPool2d:init(kernel_size, options)
  self.kernel_size = config.argument(kernel_size, "pair", "nn.MaxPool2d", "kernel_size",
    { min = 1 })
  self.options = config.check(options, OPTIONS, "nn.MaxPool2d")
  self.options.stride = self.options.stride or self.kernel_size
end

---@param x Tensor [B, C, H, W] -> [B, C, H', W']
function MaxPool2d:forward(x)
  local y = c.max_pool2d(x, self.kernel_size, self.options)
  return y
end

local function show(value)
  return type(value) == "table" and ("{%d, %d}"):format(value[1], value[2]) or tostring(value)
end

function MaxPool2d:extra_repr()
  return ("%s, {stride = %s, padding = %s}"):format(show(self.kernel_size),
    show(self.options.stride), show(self.options.padding))
end

return MaxPool2d
