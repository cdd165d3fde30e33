-- stdlib/nn/part_dropout.lua: dropout of a tensor that is a part of a larger one.
local c = require "ltrain.c"

--- What dropout of the whole would give for x, its elements `from` (counted from 0) and on along a
--- dim, of `of`. The mask of the whole is drawn: random numbers are those of one process.
return function(x, p, dim, from, of)
  local shape, n = x.shape, x.shape[dim]
  shape[dim] = of
  local ones = c.ones(shape, { dtype = x.dtype, device = x.device })
  return x * c.dropout(ones, p):narrow(dim, from + 1, n)
end
