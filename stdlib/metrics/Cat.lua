--- stdlib/metrics/Cat.lua: all values, in the order of updates (and of ranks).
local Aggregation = require "ltrain.metrics.aggregation_metric"
local c = require "ltrain.c"

local Cat = Aggregation:extend("Cat")

--- Cat()
function Cat:init() self:add_state("values", {}) end

--- Adds the values of an update.
function Cat:take(value)
  value = c.is_tensor(value) and value:reshape { -1 } or c.tensor({ value }, { dtype = "f64" })
  table.insert(self.values, value:clone())
end

--- Returns the values, a tensor [N] of f64.
function Cat:compute()
  if #self.values == 0 then return c.zeros({ 0 }, { dtype = "f64" }) end
  return c.cat(self.values, 1)
end

return Cat
