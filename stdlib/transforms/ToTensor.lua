-- stdlib/transforms/ToTensor.lua: u8 as f32 in 0..1: ToDtype("f32", {scale = true}).

local Transform = require "ltrain.transforms.Transform"

local ToTensor = Transform:extend("ToTensor")

--- transforms.ToTensor(): torchvision's older name for it
function ToTensor:init() end

function ToTensor:_steps()
  return { { "to_floats", true } }
end

return ToTensor
