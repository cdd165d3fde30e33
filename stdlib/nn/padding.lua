-- stdlib/nn/padding.lua: the base class of padding layers (ZeroPad1d, ReflectionPad2d, ...). A
-- class names its `dims` and its `mode`.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local window_sizes = require "ltrain.nn.window_sizes"

local Padding = Module:extend("Padding")

--- padding: a number for all sides, or before and after each dim, the last one first.
function Padding:init(padding, value)
  local name = "nn." .. self.__name
  padding = config.argument(padding, "each", name, "padding")
  if type(padding) == "table" and #padding ~= 2 * self.dims then
    errors.blame("%s: padding must be an integer or %d of them: got %d", name, 2 * self.dims,
      #padding)
  end
  self.padding, self.value = padding, value
  self._pads = {}
  for k = 1, 2 * self.dims do self._pads[k] = window_sizes.at(padding, k) end
end

function Padding:forward(x)
  if x.ndim ~= self.dims + 1 and x.ndim ~= self.dims + 2 then
    errors.blame("nn.%s: x must have %d or %d dims: got %s", self.__name, self.dims + 1,
      self.dims + 2, errors.show(x))
  end
  local y = c.pad(x, self._pads, { mode = self.mode, value = self.value })
  return y
end

function Padding:extra_repr()
  local text = window_sizes.show(self.padding)
  return self.value and ("%s, %s"):format(text, self.value) or text
end

return Padding
