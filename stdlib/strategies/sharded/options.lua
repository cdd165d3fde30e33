--- stdlib/strategies/sharded/options.lua: options that say what is divided among ranks, and how: of
--- Sharded, and of ModelParallelStrategy along a mesh.
local errors = require "ltrain.core.errors"

local options = {}

--- What is wrong with a stage, which may also be `least`; nil: nothing.
function options.check_stage(value, least)
  if value < least or value > 3 then
    return ("must be %s2 or 3: got %s"):format(least == 0 and "0, 1, " or "1, ", value)
  end
end

--- What is said of a number in reshard_after_forward, which PyTorch takes.
local function check_reshard(value)
  if math.type(value) then
    return ("= %s: true or false; for shards within groups of ranks write replicas = N, the number "
      .. "of groups"):format(value)
  end
end

--- What is wrong with a list of classes of modules; nil: nothing.
function options.check_units(value)
  if type(value) ~= "table" then return nil end
  for _, one in ipairs(value) do
    if type(one) ~= "table" or not rawget(one, "__name") or not one.__module then
      return ("must be a list of classes of modules: got %s"):format(errors.show(one))
    end
  end
end

--- The rows of what both have.
options.rows = {
  units = { type = "integer|function|table", default = 100000, check = options.check_units,
    doc = "modules that are gathered together: elements of ModuleLists and Sequentials with at "
      .. "least so many parameters, those of a list of classes, or those for which "
      .. "fn(module, name) is true" },
  reshard_after_forward = { type = "boolean|integer", default = true, check = check_reshard,
    doc = "stage 3: let the parameters of a unit go after its forward, and gather them again for "
      .. "backward; false: keep them in between" },
  keep_below = { type = "integer", default = 0, min = 0,
    doc = "stage 3: parameters with fewer elements stay whole on every rank" },
  accumulate = { type = "string", default = "shards", choices = { "shards", "whole" },
    doc = "with accumulate_grad_batches, stages 2 and 3: 'shards' reduces the gradients of each "
      .. "batch and adds up shards; 'whole' adds up whole gradients and reduces them once a step" },
}

--- Takes those options from checked ones into another table; returns it.
function options.take(to, o)
  for name in next, options.rows do to[name] = o[name] end
  return to
end

return options
