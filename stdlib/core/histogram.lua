--- stdlib/core/histogram.lua: a histogram of the elements of a tensor.
local c = require "ltrain.c"

--- {counts =, edges =, num =, min =, max =, sum =, sum_squares =} of the finite elements of a
--- tensor; nil when there are none.
return function(values, bins)
  local x = values:detach():to("cpu"):to("f64"):flatten()
  x = x[c.isfinite(x)]
  if #x == 0 then return nil end
  local low, high = x:min():item(), x:max():item()
  local from, to = low, high
  if low == high then from, to = low - 0.5, high + 0.5 end
  local counts = c.histc(x, { bins = bins, min = from, max = to }):tolist()
  local edges = {}
  for i, count in ipairs(counts) do counts[i] = math.tointeger(count) end
  for i = 0, bins do edges[i + 1] = from + (to - from) * i / bins end
  return { counts = counts, edges = edges, num = #x, min = low, max = high, sum = x:sum():item(),
    sum_squares = (x * x):sum():item() }
end
