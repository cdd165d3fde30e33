--- stdlib/strategies/model_parallel/expert_dims.lua: the mesh of ModelParallelStrategy with
--- expert_parallel_size.
local errors = require "ltrain.core.errors"

--- The dims, in their order. Refuses checked options that are not possible beside experts; `who`:
--- in errors.
return function(who, o)
  if o.tensor_parallel_size == "auto" then o.tensor_parallel_size = 1 end
  if o.tensor_parallel_size > 1 then
    errors.blame("%s: expert_parallel_size = %d is not possible with tensor_parallel_size = %d",
      who, o.expert_parallel_size, o.tensor_parallel_size)
  end
  return { "data_parallel", "expert_parallel", "context_parallel", "tensor_parallel" }
end
