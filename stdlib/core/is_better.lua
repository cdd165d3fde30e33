--- stdlib/core/is_better.lua: which of two values of the monitored metric is the better one.

--- Whether a is better than b; `mode`: "min" or "max".
return function(mode, a, b)
  if mode == "min" then return a < b end
  return a > b
end
