-- stdlib/transforms/Pad.lua: pads an image.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local Pad = Transform:extend("Pad")

Pad.__arguments = "padding | fill padding_mode"

local WHERE <const> = "transforms.Pad"
local OPTIONS <const> = {
  fill = values.fill,
  padding_mode = values.padding_mode,
}

--- transforms.Pad(2): all sides; or {x, y}, or {left, top, right, bottom}
---@param padding integer|table
function Pad:init(padding, options)
  self.padding = values.sides(padding, WHERE, "padding")
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.fill, self.padding_mode = values.channels(o.fill, WHERE, "fill"), o.padding_mode
end

function Pad:_steps()
  local sides <const> = self.padding
  return { { "pad", sides[1], sides[2], sides[3], sides[4], values.padding(self.padding_mode),
    fill = self.fill } }
end

return Pad
