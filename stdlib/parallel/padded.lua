--- stdlib/parallel/padded.lua: parts that are smaller than those of other ranks, for collectives,
--- which take tensors of one shape.
local c = require "ltrain.c"

--- x with zeros behind it up to a size along a dim, which may count from the end.
return function(x, dim, size)
  if dim < 0 then dim = x.ndim + dim + 1 end
  if x.shape[dim] == size then return x end
  local shape = table.move(x.shape, 1, x.ndim, 1, {})
  shape[dim] = size - shape[dim]
  return c.cat({ x, c.zeros(shape, { dtype = x.dtype, device = x.device }) }, dim)
end
