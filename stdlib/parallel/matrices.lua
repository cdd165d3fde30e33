--- stdlib/parallel/matrices.lua: which dim of a layer's weight counts its outputs, and which its
--- inputs.

local matrices = {}

--- Whether a module is a lookup table, of vectors (dim 2) by id (dim 1).
function matrices.is_embedding(module) return module.num_embeddings ~= nil end

--- The dims of the weight of a Linear, or of a layer that has `transposed_weight`: outputs, inputs;
--- nil: it is another module.
function matrices.dims(module)
  local weight = module.weight
  if not weight or weight.ndim ~= 2 then return nil end
  if module.transposed_weight then return 2, 1 end
  if module.in_features then return 1, 2 end
end

return matrices
