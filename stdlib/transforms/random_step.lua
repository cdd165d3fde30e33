-- stdlib/transforms/random_step.lua: what transforms share that take one step with probability p.
-- A class names its `step` (runtime/image/steps.def), and in `argument` the field that it gets.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomStep = Transform:extend("RandomStep")

RandomStep.options = { p = values.p }

function RandomStep:init(given)
  self.p = config.check(given, self.options, "transforms." .. self.__name).p
end

function RandomStep:_steps()
  return { { self.step, self.p, self.argument and self[self.argument] } }
end

return RandomStep
