-- stdlib/transforms/RandomApply.lua: applies a list of transforms with a probability.

local Transform = require "ltrain.transforms.Transform"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomApply = Transform:extend("RandomApply")

RandomApply.__arguments = "transforms | p"

local WHERE <const> = "transforms.RandomApply"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomApply({t1, t2}, {p = 0.3}): a list of transforms or functions
---@param transforms table
function RandomApply:init(transforms, options)
  self.transforms = values.parts(transforms, WHERE)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomApply:_steps()
  local lists <const> = values.steps_of(self.transforms)
  return lists and { { "apply", self.p, steps = values.joined(lists) } }
end

function RandomApply:_by_parts(sample)
  if c.rand(1):item() >= self.p then return sample end
  for _, part in ipairs(self.transforms) do sample = part(sample) end
  return sample
end

return RandomApply
