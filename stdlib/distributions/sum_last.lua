-- stdlib/distributions/sum_last.lua: the sum over the last dims of a tensor, which are of an event.

return function(x, ndims)
  for _ = 1, ndims do x = x:sum(-1) end
  return x
end
