--- stdlib/strategies/pipeline/pipeline_sizes.lua: how many ranks each dim of the mesh of a Pipeline
--- has.
local errors = require "ltrain.core.errors"

-- "stages = 2, data_parallel_size = auto", and those of other dims that have several ranks.
local function shown(given)
  local text = ("stages = %s, data_parallel_size = %s"):format(given.pipeline_parallel,
    given.data_parallel)
  for _, dim in ipairs { "context_parallel", "tensor_parallel" } do
    if given[dim] > 1 then text = ("%s, %s_size = %d"):format(text, dim, given[dim]) end
  end
  return text
end

--- The sizes by dim for so many ranks. `given`: by dim, those of pipeline_parallel and
--- data_parallel may be "auto". One rank has all stages, whatever is given. Raises where the sizes
--- do not multiply to the ranks; `who`: in errors.
return function(who, given, ranks)
  local sizes = { pipeline_parallel = 1, data_parallel = 1, context_parallel = 1,
    tensor_parallel = 1 }
  if ranks == 1 then return sizes end
  local inner = given.context_parallel * given.tensor_parallel
  local groups = math.max(ranks // inner, 1)
  local stages, pipelines = given.pipeline_parallel, given.data_parallel
  if stages == "auto" then
    stages = pipelines == "auto" and groups or math.max(groups // pipelines, 1)
  end
  if pipelines == "auto" then pipelines = groups // stages end
  if stages * pipelines * inner ~= ranks then
    errors.blame("%s: %s: there are %d ranks", who, shown(given), ranks)
  end
  return { pipeline_parallel = stages, data_parallel = pipelines,
    context_parallel = given.context_parallel, tensor_parallel = given.tensor_parallel }
end
