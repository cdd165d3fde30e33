-- stdlib/optim/LambdaLR.lua: the initial learning rate times a function of the number of steps.

local LRScheduler = require "ltrain.optim.LRScheduler"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local LambdaLR = LRScheduler:extend("LambdaLR")

local OPTIONS <const> = LRScheduler.rows {}

--- LambdaLR(optimizer, function(n) return 0.95 ^ n end), or a list with one function per group.
function LambdaLR:init(optimizer, factor, options)
  self:check_optimizer(optimizer)
  local name = getmetatable(self).__name
  local o = config.check(options, OPTIONS, "optim." .. name)
  local list = type(factor) == "table" and factor or { factor }
  for i, fn in ipairs(list) do
    if type(fn) ~= "function" then
      errors.blame("optim.%s: factor %d must be a function: got %s", name, i, errors.show(fn))
    end
  end
  local groups = optimizer and optimizer.param_groups or {}
  if #list == 0 or type(factor) == "table" and #list ~= #groups then
    errors.blame("optim.%s: %d functions for %d groups", name, #list, #groups)
  end
  self.factors = list
  LRScheduler.init(self, optimizer, o.warmup)
end

--- Returns the factor of group `index` after `n` steps.
function LambdaLR:factor(n, index)
  local fn = self.factors[index] or self.factors[1]
  local factor = fn(n)
  if type(factor) ~= "number" then
    errors.blame("optim.%s: the function of %s must return a number: got %s after %d steps",
      getmetatable(self).__name, c.runtime.function_line(fn), errors.show(factor), n)
  end
  return factor
end

function LambdaLR:rate(base, n, index)
  return base * self:factor(n, index)
end

return LambdaLR
