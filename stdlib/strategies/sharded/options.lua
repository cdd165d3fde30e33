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

local function check_replicas(value)
  if type(value) == "string" and value ~= "machines" or math.type(value) and value < 1 then
    return ("must be a number of groups of ranks, or 'machines': got %s"):format(value)
  end
end

local function check_offload(value)
  local is_path = type(value) == "table" and type(value.path) == "string" and next(value) == "path"
    and next(value, "path") == nil
  if value ~= "cpu" and not is_path then
    return ("must be 'cpu', or {path = a folder}: got %s"):format(errors.show(value))
  end
end

--- The rows of modules that are computed again, also where nothing is divided.
options.recomputing = {
  activation_checkpointing = { type = "function|table", check = options.check_units,
    doc = "modules of which backward computes the activations again: a list of classes, or "
      .. "fn(module, name)" },
  offload_activations = { type = "boolean", default = false,
    doc = "with activation_checkpointing: what these modules are called with waits on the host" },
}

--- The rows of what both have.
options.rows = {
  replicas = { type = "integer|string", default = 1, check = check_replicas,
    doc = "groups of ranks of which each has all shards: a number, of consecutive ranks, or "
      .. "'machines': one a machine" },
  offload = { type = "string|table", check = check_offload,
    doc = "'cpu': what is divided stays on the host, where optimizers step; {path = a folder}: in "
      .. "files there" },
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

for name, row in next, options.recomputing do options.rows[name] = row end

--- Refuses checked options that are of others; `who`: the strategy.
function options.check(who, o)
  if o.offload_activations and not o.activation_checkpointing then
    errors.blame("%s: offload_activations is of the modules that activation_checkpointing names: "
      .. "write activation_checkpointing = {Block}", who)
  end
end

--- Refuses a hook of whole gradients where the option `stage` divides them: gradients that are
--- reduced to shards are sent as they are, or in bf16.
function options.check_hook(who, stage, o)
  local hook = o.ddp_comm_hook
  if o[stage] < 2 or hook == nil or hook == "bf16" then return end
  errors.blame("%s: ddp_comm_hook = %s needs whole gradients, which %s = %d divides: write "
    .. "'bf16', or %s = 1", who, errors.show(hook), stage, o[stage], stage)
end

local ALONE <const> = "offload has no effect: one rank divides nothing"

--- Notes in a strategy that its offload has no effect.
function options.note_alone(strategy)
  strategy.notes = strategy.notes or {}
  local notes = strategy.notes
  if notes[#notes] ~= ALONE then table.insert(notes, ALONE) end
end

--- Refuses a number of replicas that does not divide that of the ranks. `whose`: of which ranks.
function options.check_replicas(who, replicas, ranks, whose)
  if ranks == 1 or not math.type(replicas) or ranks % replicas == 0 then return end
  errors.blame("%s: replicas = %d must divide the number of ranks%s: got %d", who, replicas,
    whose or "", ranks)
end

--- Takes those options from checked ones into another table; returns it.
function options.take(to, o)
  for name in next, options.rows do to[name] = o[name] end
  return to
end

return options
