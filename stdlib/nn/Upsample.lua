-- stdlib/nn/Upsample.lua: resizes signals, images or volumes, as lt.interpolate.
-- N batch, C channels.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local interpolate = require "ltrain.ops.interpolate"
local rows = require "ltrain.ops.interpolate_options"
local window_sizes = require "ltrain.nn.window_sizes"

local Upsample = Module:extend("Upsample")

Upsample.__arguments = "| size scale_factor mode align_corners recompute_scale_factor"

Upsample.options = {
  size = rows.size, scale_factor = rows.scale_factor, mode = rows.mode,
  align_corners = rows.align_corners, recompute_scale_factor = rows.recompute_scale_factor,
}

--- nn.Upsample{scale_factor = 2, mode = "bilinear"}
function Upsample:init(options)
  local where <const> = "nn." .. self.__name
  local o <const> = config.check(options, self.options, where)
  if (o.size == nil) == (o.scale_factor == nil) then
    errors.blame("%s: needs size or scale_factor%s", where, o.size and ", got both" or "")
  end
  self.options = o
  self._shown = window_sizes.repr(o, getmetatable(self).options,
    { "size", "scale_factor", "mode", "align_corners", "recompute_scale_factor" })
end

---@param x Tensor [N, C, ...] -> [N, C, ...]
function Upsample:forward(x)
  local y = interpolate(x, self.options)
  return y
end

function Upsample:extra_repr() return self._shown end

return Upsample
