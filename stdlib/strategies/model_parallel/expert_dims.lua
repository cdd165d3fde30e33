--- stdlib/strategies/model_parallel/expert_dims.lua: the mesh of ModelParallelStrategy with
--- expert_parallel_size.

--- The dims, in their order. Of checked options tensor_parallel_size is then one rank by default.
return function(o)
  if o.tensor_parallel_size == "auto" then o.tensor_parallel_size = 1 end
  return { "data_parallel", "expert_parallel", "context_parallel", "tensor_parallel" }
end
