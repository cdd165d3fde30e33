-- stdlib/optim/LambdaLR.lua: the initial learning rate times a function of the number of steps.

local LRScheduler = require "ltrain.optim.LRScheduler"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local LambdaLR = LRScheduler:extend("LambdaLR")

--- LambdaLR(optimizer, function(n) return 0.95 ^ n end), or a list with one function per group.
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
  local fn = self.factors[index] or self.factors[1]
  local factor = fn(n)
  if type(factor) ~= "number" then
    errors.blame("optim.LambdaLR: the function of %s must return a number: got %s after %d steps",
      c.runtime.function_line(fn), errors.show(factor), n)
  end
  return base * factor
end

return LambdaLR
