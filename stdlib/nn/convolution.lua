-- stdlib/nn/convolution.lua: the base class of Conv1d..3d and ConvTranspose1d..3d. A class names
-- its `dims` and its operation, `op`; the weight of a `transposed` one is [in, out / groups, ...].

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local initialise = require "ltrain.nn.initialise"
local window_sizes = require "ltrain.nn.window_sizes"

local Convolution = Module:extend("Convolution")

local function padding_word(value)
  if type(value) == "string" and value ~= "same" and value ~= "valid" then
    return ("must be numbers, 'same' or 'valid': got %s"):format(errors.show(value))
  end
end

Convolution.options = {
  stride = { type = "each", default = 1, min = 1 },
  padding = { type = "each|string", default = 0, min = 0, check = padding_word,
    doc = "padding on both sides; 'same': preserves the size, 'valid': none" },
  dilation = { type = "each", default = 1, min = 1, doc = "spacing between kernel elements" },
  groups = { type = "integer", default = 1, min = 1,
    doc = "groups of channels that are convolved separately" },
  bias = { type = "boolean", default = true },
  padding_mode = { type = "string", default = "zeros",
    choices = { "zeros", "reflect", "replicate", "circular" }, doc = "padding values" },
}

local ORDER <const> = { "stride", "padding", "output_padding", "dilation", "groups", "bias",
  "padding_mode" }

-- What padding adds, as c.pad takes it: before and after each dim, the last one first.
local function pads(self, o)
  local list = {}
  for k = self.dims, 1, -1 do
    local before, after = window_sizes.at(o.padding, k), window_sizes.at(o.padding, k)
    if o.padding == "valid" then before, after = 0, 0 end
    if o.padding == "same" then
      local all = window_sizes.at(o.dilation, k) * (window_sizes.at(self.kernel_size, k) - 1)
      before, after = all // 2, all - all // 2
    end
    list[#list + 1], list[#list + 2] = before, after
  end
  return list
end

function Convolution:init(in_channels, out_channels, kernel_size, options)
  local name = "nn." .. self.__name
  self.in_channels = config.argument(in_channels, "integer", name, "in_channels", { min = 1 })
  self.out_channels = config.argument(out_channels, "integer", name, "out_channels", { min = 1 })
  self.kernel_size = window_sizes.argument(self, "kernel_size", kernel_size)
  local rows = self.options -- the class's
  local o = window_sizes.options(self, options, rows)
  if in_channels % o.groups ~= 0 or out_channels % o.groups ~= 0 then
    errors.blame("%s: groups must divide both channel counts: got %d of %d and %d", name, o.groups,
      in_channels, out_channels)
  end
  self._shown = window_sizes.repr(o, rows, ORDER)
  if o.padding_mode and o.padding_mode ~= "zeros" then
    self._pads, self._mode, o.padding = pads(self, o), { mode = o.padding_mode }, 0
  end
  self.options = { stride = o.stride, padding = o.padding, dilation = o.dilation,
                   groups = o.groups, output_padding = o.output_padding }
  local shape = self.transposed and { in_channels, out_channels // o.groups }
    or { out_channels, in_channels // o.groups }
  for k = 1, self.dims do shape[k + 2] = window_sizes.at(self.kernel_size, k) end
  self.weight = c.parameter(c.empty(shape))
  if o.bias then self.bias = c.parameter(c.empty(out_channels)) end
  initialise.default_(self.weight, self.bias)
end

function Convolution:forward(x)
  if self._pads then x = c.pad(x, self._pads, self._mode) end
  local y = c[self.op](x, self.weight, self.bias, self.options)
  return y
end

function Convolution:extra_repr()
  local text = ("%d, %d, %s"):format(self.in_channels, self.out_channels,
    window_sizes.show(self.kernel_size))
  return self._shown and text .. ", " .. self._shown or text
end

return Convolution
