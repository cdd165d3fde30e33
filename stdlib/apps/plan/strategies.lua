--- stdlib/apps/plan/strategies.lua: the strategies of a plan: ddp, the stages of Sharded and a
--- pipeline, with the options that the script's own strategy has; of a script with
--- ModelParallelStrategy also tensor parallel groups of each size.
local DDP = require "ltrain.strategies.DDP"
local ModelParallelStrategy = require "ltrain.strategies.ModelParallelStrategy"
local Pipeline = require "ltrain.strategies.Pipeline"
local Sharded = require "ltrain.strategies.Sharded"
local SingleDevice = require "ltrain.strategies.SingleDevice"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local registry = require "ltrain.strategies.registry"
local sharding_options = require "ltrain.strategies.sharded.options"

local strategies = {}

local STAGES <const> = { "zero1", "deepspeed_stage_2", "fsdp" }
local KEPT <const> = { "units", "reshard_after_forward", "keep_below", "activation_checkpointing",
  "accumulate", "bucket_cap_mb", "replicas" }

--- A strategy of a stage with the options of `own` where that is Sharded, and `changes`.
function strategies.sharded(own, stage, changes)
  local options = { stage = stage }
  for _, name in ipairs(class.is_a(own, Sharded) and KEPT or {}) do options[name] = own[name] end
  for name, value in next, changes or {} do options[name] = value end
  return Sharded(options)
end

-- Whether the script's own strategy is none of ddp and the stages. Devices of one process (dp) are
-- planned as ranks.
local function is_other(own)
  return not (own.has_all_devices or class.is_a(own, Sharded) or class.is_a(own, DDP)
    or class.is_a(own, SingleDevice))
end

-- What makes the strategy of a name, each time a new one.
local function maker(own, name)
  local row = registry.get(name)
  if class.is_a(own, Sharded) and row.class == getmetatable(own)
    and own.stage == row.params.stage then
    return function() return strategies.sharded(own, own.stage) end
  end
  return function() return row.class(row.params) end
end

-- That of a pipeline: `own`, if it is one. Where the module cannot be divided there is none.
local function pipeline_row(own)
  return { name = "pipeline", is_optional = true,
    own = class.is_a(own, Pipeline) and own or Pipeline() }
end

-- The names of "ddp, fsdp"; none of "all" and nil.
local function names_of(wanted)
  local list = {}
  for name in (wanted ~= "all" and wanted or ""):gmatch "[^,%s]+" do list[#list + 1] = name end
  return list
end

--- What is wrong with --strategy; nil when nothing is.
function strategies.wrong(wanted)
  for _, name in ipairs(names_of(wanted)) do
    if not registry.find(name:lower()) then
      local names = registry.available_strategies()
      return ("--strategy: must be all, or of %s: got %s%s"):format(table.concat(names, ", "),
        name, errors.did_you_mean(name:lower(), names))
    end
  end
end

-- A row of a mesh with the options of `own`, a ModelParallelStrategy, and `changes`.
local function mesh_row(own, name, changes)
  local options = sharding_options.take({ context_parallel_size = own.given_sizes.context_parallel,
    stage = own.stage, bucket_cap_mb = own.bucket_cap_mb }, own)
  options.offload, options.offload_activations = nil, nil -- a plan is of devices
  for key, value in next, changes do options[key] = value end
  return { name = name, is_optional = true,
    make = function() return ModelParallelStrategy(options) end }
end

-- Adds row(size) for groups of 2, 4, ... ranks along a dim, up to `most`.
local function add_sizes(rows, own, ranks, most, row)
  local size, others = 2, own.given_sizes.context_parallel
  while size * others <= most do
    if ranks % (size * others) == 0 then rows[#rows + 1] = row(size) end
    size = 2 * size
  end
end

-- Rows of a script that has a mesh: of groups of a machine's ranks that divide matrices, and of
-- those that divide experts, where its mesh has such a dim; and with all shards on each machine,
-- where it shards.
local function add_mesh_rows(rows, own, ranks, per_node)
  add_sizes(rows, own, ranks, per_node, function(size)
    return mesh_row(own, ("tensor_parallel_size %d"):format(size), { tensor_parallel_size = size })
  end)
  local sizes = own.given_sizes
  if sizes.expert_parallel then
    add_sizes(rows, own, ranks, ranks, function(size)
      return mesh_row(own, ("expert_parallel_size %d"):format(size),
        { expert_parallel_size = size, tensor_parallel_size = 1 })
    end)
  end
  if own.stage > 0 and ranks > per_node then
    rows[#rows + 1] = mesh_row(own, "replicas 'machines'", { replicas = "machines",
      expert_parallel_size = sizes.expert_parallel,
      tensor_parallel_size = sizes.tensor_parallel })
  end
end

--- The rows of a plan: { name =, stage =, make = function that returns a new strategy,
--- is_optional = whether the module may be made for others alone }, or in place of `make` own = a
--- Pipeline. `own`: the Trainer's strategy; `wanted`: names with commas, "all" or nil; `many`: for
--- several numbers of ranks, of which some are more than a pipeline has stages.
function strategies.rows(own, ranks, per_node, wanted, many)
  local rows = {}
  for i, name in ipairs(names_of(wanted)) do
    if class.is_class(registry.get(name).class, Pipeline) then
      rows[i] = pipeline_row(own)
    else
      rows[i] = { name = name, make = maker(own, name:lower()) }
    end
  end
  if #rows > 0 then return rows end
  if is_other(own) then
    rows[1] = { name = class.of(own).__name, make = function() return own end }
  end
  if ranks == 1 then
    rows[#rows + 1] = { name = "single_device", make = function() return SingleDevice() end }
    return rows
  end
  local has_mesh = class.is_a(own, ModelParallelStrategy)
  if has_mesh and not class.is_a(own, Pipeline) then
    add_mesh_rows(rows, own, ranks, per_node)
  end
  rows[#rows + 1] = { name = "ddp", is_optional = has_mesh, make = function() return DDP() end }
  for stage, name in ipairs(STAGES) do
    rows[#rows + 1] = { name = name, stage = stage, is_optional = has_mesh,
      make = function() return strategies.sharded(own, stage) end }
  end
  if not many then rows[#rows + 1] = pipeline_row(own) end
  return rows
end

return strategies
