-- stdlib/transforms/Normalize.lua: subtracts a mean and divides by a standard deviation.

local Transform = require "ltrain.transforms.Transform"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local Normalize = Transform:extend("Normalize")

Normalize.__arguments = "mean std"

local WHERE <const> = "transforms.Normalize"

local function numbers(list, name)
  if type(list) == "number" then return { list } end
  if type(list) ~= "table" then
    errors.blame("%s: %s must be a list of numbers: got %s", WHERE, name, errors.show(list))
  end
  return values.channels(list, WHERE, name)
end

--- transforms.Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}): one number per channel, or
--- one for all; for f32 images
---@param mean table
---@param std table
function Normalize:init(mean, std)
  self.mean, self.std = numbers(mean, "mean"), numbers(std, "std")
  if #self.mean ~= #self.std then
    errors.blame("%s: %d means and %d deviations", WHERE, #self.mean, #self.std)
  end
  for _, deviation in ipairs(self.std) do
    if deviation == 0 then errors.blame("%s: std must not be 0", WHERE) end
  end
end

function Normalize:_steps()
  local step = { "normalize", #self.mean }
  table.move(self.mean, 1, #self.mean, 3, step)
  table.move(self.std, 1, #self.std, #step + 1, step)
  return { step }
end

return Normalize
