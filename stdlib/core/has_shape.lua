-- stdlib/core/has_shape.lua: whether a tensor has the shape of another.

return function(tensor, other)
  if tensor.ndim ~= other.ndim then return false end
  local sizes, others = tensor.shape, other.shape
  for i = 1, #sizes do
    if sizes[i] ~= others[i] then return false end
  end
  return true
end
