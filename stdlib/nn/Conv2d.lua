-- stdlib/nn/Conv2d.lua: 2D convolution.
-- B batch, I channels in, O channels out, H height, W width.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local initialise = require "ltrain.nn.initialise"

local Conv2d = Module:extend("Conv2d")

local OPTIONS <const> = {
  stride = { type = "pair", default = 1, min = 1 },
  padding = { type = "pair", default = 0, min = 0, doc = "zeros added on each side" },
  dilation = { type = "pair", default = 1, min = 1, doc = "spacing between kernel elements" },
  groups = { type = "integer", default = 1, min = 1,
    doc = "groups of channels that are convolved separately" },
  bias = { type = "boolean", default = true },
}

local function pair(value)
  if type(value) == "table" then return value[1], value[2] end
  return value, value
end

--- nn.Conv2d(1, 32, 3, {padding = 1})
function Conv2d:init(in_channels, out_channels, kernel_size, options)
  local function argument(value, kind, name)
    return config.argument(value, kind, "nn.Conv2d", name, { min = 1 })
  end
  self.in_channels = argument(in_channels, "integer", "in_channels")
  self.out_channels = argument(out_channels, "integer", "out_channels")
  self.kernel_size = argument(kernel_size, "pair", "kernel_size")
  local o = config.check(options, OPTIONS, "nn.Conv2d")
  if in_channels % o.groups ~= 0 or out_channels % o.groups ~= 0 then
    errors.blame("nn.Conv2d: groups must divide both channel counts: got %d of %d and %d",
      o.groups, in_channels, out_channels)
  end
  self.options = { stride = o.stride, padding = o.padding, dilation = o.dilation,
                   groups = o.groups }
  local height, width = pair(self.kernel_size)
  self.weight = c.parameter(c.empty(out_channels, in_channels // o.groups, height, width))
  if o.bias then self.bias = c.parameter(c.empty(out_channels)) end
  initialise.default_(self.weight, self.bias)
end

---@param x Tensor [B, I, H, W] -> [B, O, H', W']
function Conv2d:forward(x)
  local y = c.conv2d(x, self.weight, self.bias, self.options)
  return y
end

local function show(value)
  return type(value) == "table" and ("{%d, %d}"):format(value[1], value[2]) or tostring(value)
end

function Conv2d:extra_repr()
  local parts = {}
  for _, name in ipairs { "stride", "padding", "dilation", "groups" } do
    local value = self.options[name]
    if value ~= OPTIONS[name].default then parts[#parts + 1] = name .. " = " .. show(value) end
  end
  if not self.bias then parts[#parts + 1] = "bias = false" end
  return ("%d, %d, %s%s"):format(self.in_channels, self.out_channels, show(self.kernel_size),
    #parts > 0 and (", {%s}"):format(table.concat(parts, ", ")) or "")
end

return Conv2d
