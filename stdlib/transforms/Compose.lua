-- stdlib/transforms/Compose.lua: applies transforms one after the other.

local Transform = require "ltrain.transforms.Transform"
local values = require "ltrain.transforms.values"

local Compose = Transform:extend("Compose")

local WHERE <const> = "transforms.Compose"

--- transforms.Compose{t1, t2, ...}: functions are allowed too
---@param transforms table
function Compose:init(transforms)
  self.transforms = values.parts(transforms, WHERE)
end

function Compose:_steps()
  local lists <const> = values.steps_of(self.transforms)
  return lists and values.joined(lists)
end

function Compose:_by_parts(sample)
  for _, part in ipairs(self.transforms) do sample = part(sample) end
  return sample
end

return Compose
