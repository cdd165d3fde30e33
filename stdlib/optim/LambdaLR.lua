-- stdlib/optim/LambdaLR.lua: the rate times a function of the number of steps.

local LRScheduler = require "ltrain.optim.LRScheduler"
local errors = require "ltrain.core.errors"

local LambdaLR = LRScheduler:extend("LambdaLR")

--- LambdaLR(optimizer, function(n) return 0.95 ^ n end), or a list with a function a group.
function LambdaLR:init(optimizer, factor)
  local list = type(factor) == "table" and factor or { factor }
  for i, fn in ipairs(list) do
    if type(fn) ~= "function" then
      errors.blame("optim.LambdaLR: factor %d must be a function: got %s", i, errors.show(fn))
    end
  end
  local groups = optimizer and optimizer.param_groups or {}
  if #list == 0 or type(factor) == "table" and #list ~= #groups then
    errors.blame("optim.LambdaLR: %d functions for %d groups", #list, #groups)
  end
  self.factors = list
  LRScheduler.init(self, optimizer)
end

function LambdaLR:rate(base, n, index)
  return base * (self.factors[index] or self.factors[1])(n)
end

return LambdaLR
