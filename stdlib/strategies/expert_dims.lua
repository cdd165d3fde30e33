--- stdlib/strategies/expert_dims.lua: the mesh of ModelParallelStrategy with expert_parallel_size.
local errors = require "ltrain.core.errors"

--- The dims, in their order. Refuses checked options that are not possible beside experts; `who`:
--- in errors.
return function(who, o)
  if o.tensor_parallel_size == "auto" then o.tensor_parallel_size = 1 end
  local other = o.tensor_parallel_size > 1 and "tensor_parallel_size" or o.stage > 0 and "stage"
  if other then
    errors.blame("%s: expert_parallel_size = %d is not possible with %s = %d", who,
      o.expert_parallel_size, other, o[other])
  end
  return { "data_parallel", "expert_parallel", "context_parallel", "tensor_parallel" }
end
