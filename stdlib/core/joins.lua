-- stdlib/core/joins.lua: how two halves of the data become one figure, by the name of the way:
-- numbers and tensors by "sum", "min" and "max" (a NaN wins), lists by "cat".

local c = require "ltrain.c"

return {
  sum = function(a, b) return a + b end,
  min = function(a, b)
    if type(a) == "number" then return a ~= a and a or b ~= b and b or math.min(a, b) end
    return c.minimum(a, b)
  end,
  max = function(a, b)
    if type(a) == "number" then return a ~= a and a or b ~= b and b or math.max(a, b) end
    return c.maximum(a, b)
  end,
  cat = function(a, b) return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})) end,
}
