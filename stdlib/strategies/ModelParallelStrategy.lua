--- stdlib/strategies/ModelParallelStrategy.lua: groups of ranks compute one module together, each
--- rank a part of it; the groups are data parallel, as in DDP.
--
-- The ranks are a mesh with a dim for each kind of parallelism (Lightning's names): along
-- data_parallel ranks read different samples, along context_parallel they have parts of the same
-- sequences, along tensor_parallel parts of the same matrices, which lt.parallelize cuts in the
-- module's configure_model. Tensor parallel comes last, so that its ranks are next to each other:
-- it has most traffic. Along expert_parallel, a dim that is there where its size is given, they
-- read different samples too, and have different experts; along tensor_parallel the same ones.
--
-- What a rank has of a parameter that is cut is a parameter of its own: gradients are summed over
-- the ranks that have the same part, and the optimizer steps it as any other. The norm of all
-- gradients counts each part once. Parameters that are not cut are the same on all ranks of a
-- group, and get the same gradients there.
--
-- With a stage the ranks that have the same parts shard what they have, as strategies.Sharded does
-- with whole parameters (sharded/Sharding.lua).
local DDP = require "ltrain.strategies.DDP"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local PartReducer = require "ltrain.dist.PartReducer"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local checks = require "ltrain.strategies.model_parallel.checks"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local data_ranks = require "ltrain.dist.data_ranks"
local ddp = require "ltrain.dist.ddp"
local dist = require "ltrain.dist"
local divided_modules = require "ltrain.parallel.divided_modules"
local divided_sequences = require "ltrain.strategies.model_parallel.divided_sequences"
local expert_dims = require "ltrain.strategies.model_parallel.expert_dims"
local gradients_of = require "ltrain.core.gradients_of"
local groups = require "ltrain.strategies.model_parallel.groups"
local mesh_sharding = require "ltrain.strategies.model_parallel.mesh_sharding"
local mesh_sizes = require "ltrain.strategies.model_parallel.mesh_sizes"
local own_options = require "ltrain.strategies.model_parallel.options"
local parameters_of = require "ltrain.core.parameters_of"
local part_state = require "ltrain.parallel.part_state"
local parts = require "ltrain.core.parts"
local recomputed = require "ltrain.strategies.sharded.recomputed"
local shared_parameters = require "ltrain.strategies.model_parallel.shared_parameters"
local sharding_options = require "ltrain.strategies.sharded.options"

local ModelParallelStrategy = DDP:extend("ModelParallelStrategy")

--- Rows of options for a subclass: its own and those of this class.
ModelParallelStrategy.rows = own_options.rows

--- Its options.
ModelParallelStrategy.options = own_options.rows()

--- The dims of the mesh in their order; of each there is an option `<dim>_size`.
ModelParallelStrategy.dims = { "data_parallel", "context_parallel", "tensor_parallel" }
ModelParallelStrategy.context_parallel_size = 1 -- of a mesh without these dims
ModelParallelStrategy.expert_parallel_size = 1
ModelParallelStrategy.stage = 0 -- of a subclass without the option

local function name_of(self) return "strategies." .. class.of(self).__name end

--- ModelParallelStrategy{data_parallel_size = 2, tensor_parallel_size = 2, ...}
function ModelParallelStrategy:init(options)
  local o, notes = own_options.check(options, class.of(self).options, name_of(self))
  self:take_options(o, notes)
  if o.expert_parallel_size then self.dims = expert_dims(o) end
  self.given_sizes = {} -- by dim, as the script gave them
  for _, dim in ipairs(self.dims) do
    self.given_sizes[dim] = o[dim .. "_size"]
    self[dim .. "_size"] = o[dim .. "_size"]
  end
  if o.save_distributed_checkpoint ~= nil then
    self.state_dict_type = o.save_distributed_checkpoint and "sharded" or "full"
  end
  sharding_options.check(name_of(self), o)
  sharding_options.take(self, o)
  self.stage, self.context_parallel_attention = o.stage, o.context_parallel_attention
  self.sequence_dim = o.sequence_dim
end

-- Sizes.

--- The size of each dim of the mesh for so many ranks on so many machines, by name. Raises where
--- they do not multiply to the ranks.
function ModelParallelStrategy:mesh_sizes(ranks, machines)
  return mesh_sizes(name_of(self), self.dims, self.given_sizes, ranks, machines)
end

--- Refuses sizes that do not fit the number of ranks, and sets those that are "auto".
function ModelParallelStrategy:configure(ranks, o)
  ParallelStrategy.configure(self, ranks, o)
  local world = dist.world()
  local sizes = self:mesh_sizes(ranks, world.ranks == ranks and world.nodes or 1)
  for dim, size in next, sizes do self[dim .. "_size"] = size end
  mesh_sharding.check(self, name_of(self), sizes)
end

--- Makes the mesh, and says which of its ranks read samples of their own.
function ModelParallelStrategy:setup_mesh()
  local sizes = {}
  for i, dim in ipairs(self.dims) do sizes[i] = self[dim .. "_size"] end
  local made, scope = groups.make(sizes, self.dims)
  self.device_mesh, self.same_parts, self.one_module = made.mesh, made.same_parts, made.one_module
  self.same_experts = made.same_experts
  return setmetatable({}, { __close = function()
    local _ <close> = scope
    self.device_mesh, self.same_parts, self.one_module, self.same_experts = nil, nil, nil, nil
  end })
end

-- Ranks.

-- The sharding of the run, among the ranks that have the same parts; nil: nothing is divided so.
-- All ranks call it.
local function begin_sharding(self)
  if not (self.sharding and self.sharding:is_in_use()) then
    self.sharding = mesh_sharding.new(self, name_of(self))
  end
  return self.sharding
end

-- That of a run whose module is divided; nil: it is not.
local function active(self)
  local sharding = self.sharding
  return sharding and sharding.sharded and sharding or nil
end

function ModelParallelStrategy:setup(trainer)
  begin_sharding(self)
  DDP.setup(self, trainer)
end

--- With stage 3 what is on the meta device gets its values a parameter at a time, of which a rank
--- then keeps its shard.
function ModelParallelStrategy:materialize(module)
  if self.sharding then
    self.sharding:materialize(module, self.root_device, function(parameter)
      shared_parameters.share(parameter, self.same_experts)
    end)
  end
  DDP.materialize(self, module)
end

--- All ranks get the parameters and buffers of the first one; of parameters that are cut, those
--- that have the same parts. What is sharded already is the same.
function ModelParallelStrategy:share_module(module)
  local parted = self.sharding and self.sharding.parted
  local has_cuts = shared_parameters.share_all(module, self.same_experts,
    parted and parted.of or {})
  self.divides = self.one_module:world_size() > 1 and has_cuts
end

-- The module.

--- Shards the module. Called by setup_module on all ranks.
function ModelParallelStrategy:shard_module(module)
  local sharding, trains = self.sharding, module.trainer.state.fn == "fit"
  if not sharding or sharding.sharded or not (trains or self.stage == 3) then return end
  if trains then checks.sharding(name_of(self), module, self.stage) end
  sharding:divide(module, self.stage == 1)
end

--- Divides the module by the stage.
function ModelParallelStrategy:setup_module(module)
  local who, sharding, trains = name_of(self), self.sharding, module.trainer.state.fn == "fit"
  checks.callbacks(who, module.trainer.callbacks, self.divides, sharding and self.stage or 0)
  if trains and self.activation_checkpointing and not self.end_recomputing then
    self.end_recomputing = recomputed(module, self.activation_checkpointing,
      self.offload_activations)
  end
  self:shard_module(module)
  return DDP.setup_module(self, module)
end

--- See DDP; with stages 2 and 3 gradients are reduced to shards, and those of experts are summed
--- over the ranks that have the same.
function ModelParallelStrategy:configure_ddp(module)
  local sharding = active(self)
  if sharding and not sharding.has_whole_gradients then return sharding:as_ddp(module) end
  local has_parts = PartReducer.is_needed(module:parameters())
  return ddp.class(module, { bucket_cap_mb = self.bucket_cap_mb, comm_hook = self.comm_hook,
    group = data_ranks.group(), part_group = has_parts and self.same_parts or nil })
end

--- Refuses optimizers that compute with whole parameters; shards the state of others.
function ModelParallelStrategy:setup_optimizers(optimizers)
  for _, optimizer in ipairs(self.divides and optimizers or {}) do
    checks.optimizer(name_of(self), optimizer)
  end
  if self.sharding then self.sharding:check(optimizers) end
  if active(self) then self.sharding:add(optimizers) end
  return optimizers
end

function ModelParallelStrategy:sync_buffers(module)
  if self.world_size > 1 and self.broadcast_buffers ~= false then
    broadcast_parameters.buffers(module)
  end
end

-- Steps; of divided sequences see divided_sequences.lua.

function ModelParallelStrategy:divide_batch(batch) return divided_sequences.divide(self, batch) end

function ModelParallelStrategy:forward_scope()
  return divided_sequences.scope(self, DDP.forward_scope(self))
end

function ModelParallelStrategy:backward_scope()
  return divided_sequences.scope(self, DDP.backward_scope(self))
end

-- Whether this rank counts what ranks that have parts of the same matrices have alike.
local function counts_whole(self) return self.device_mesh:rank "tensor_parallel" == 0 end

--- Lists of the parameters whose gradients this rank counts in a norm, by group: along dims that do
--- not divide a parameter, of the ranks of one module, the first rank counts it.
function ModelParallelStrategy:counted_groups(optimizer)
  local counted, mesh = {}, self.device_mesh
  local function counts(cut)
    if not cut then return self.one_module:rank() == 0 end
    if cut.is_summed then return counts_whole(self) end
    return self.expert_parallel_size == 1 or mesh:rank "expert_parallel" == 0
  end
  for g, group in ipairs(optimizer.param_groups) do
    counted[g] = { params = cuts.counted(group.params, counts) }
  end
  return counted
end

--- Whether this rank counts its shard of a parameter: of what is not cut, and of experts, one of
--- the ranks that have the same does.
function ModelParallelStrategy:counts_shard(parameter)
  local cut = cuts.of(parameter)
  return counts_whole(self) or cut ~= nil and not cut.is_summed
end

-- Whether a parameter on any rank of the module is f64.
local function is_wide(optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if parameter.dtype == "f64" then return true end
  end
  return false
end

--- The norm over the parts of one module. Partial norms are f64, so that rounding to the gradients'
--- dtype comes last, as on one rank.
function ModelParallelStrategy:grad_norm(optimizer, p)
  local sharding = active(self)
  if sharding and sharding:has_gradients_of(optimizer) then
    return sharding:grad_norm(optimizer, p, self.root_device, function(parameter)
      return self:counts_shard(parameter)
    end)
  elseif not self.divides then
    return DDP.grad_norm(self, optimizer, p)
  end
  local gradients = gradients_of(self:counted_groups(optimizer))
  table.insert(gradients, c.zeros({ 1 }, { dtype = "f64", device = self.root_device }))
  local norms = collectives.all_gather(c.grads_norm(gradients, p), { group = self.one_module })
  local norm = c.grads_norm({ norms }, p)
  return is_wide(optimizer) and norm or norm:to "f32"
end

--- In the shape of the whole: this rank's part, at its place; of what is not cut the first rank's.
function ModelParallelStrategy:accumulated_gradient(parameter)
  local grad = DDP.accumulated_gradient(self, parameter)
  if not self.divides then return grad end
  local cut = cuts.of(parameter)
  if not cut and counts_whole(self) then return grad end
  local whole = c.zeros(cuts.shape(parameter), { dtype = parameter.dtype,
    device = parameter.device })
  local counts = cut and (counts_whole(self) or not cut.is_summed)
  if counts and grad then cuts.put(cut, whole, cut.rank, grad) end
  return whole
end

function ModelParallelStrategy:has_accumulated_gradient(parameter)
  local sharding = self.sharding
  return parameter.grad ~= nil or sharding ~= nil and sharding:has_accumulated_gradient(parameter)
end

--- Of what is saved the ranks of the first replica take their parts; of experts those of each part.
function ModelParallelStrategy:takes_gradient(parameter, is_first)
  if PartReducer.is_part(parameter) then return self.same_parts:rank() == 0 end
  return is_first
end

-- State.

--- This rank's parts of the parameters that are cut or sharded, and the rest.
function ModelParallelStrategy:module_parts(module)
  if self.stage == 3 and active(self) then return self.sharding:module_parts(module) end
  return self.divides and part_state.of_module(module) or DDP.module_parts(self, module)
end

--- Each rank loads its parts. Before setup these are with stage 3 shards of what is on the meta
--- device.
function ModelParallelStrategy:load_module_state(module, state)
  local sharding = begin_sharding(self)
  if sharding and sharding:reads_shards(module) then
    self:materialize(module)
    if sharding:load_parted(module, state) then return end
  end
  local _ <close> = self:gather_parameters()
  DDP.load_module_state(self, module, state)
end

function ModelParallelStrategy:optimizer_parts(optimizer, own_tensors)
  if active(self) then return self.sharding:optimizer_parts(optimizer, own_tensors) end
  return self.divides and part_state.of_optimizer(optimizer, own_tensors)
    or DDP.optimizer_parts(self, optimizer, own_tensors)
end

--- Each rank loads its parts.
function ModelParallelStrategy:load_optimizer_state(optimizer, state)
  if active(self) then return self.sharding:load_optimizer(optimizer, state) end
  optimizer:load_state_dict(parts.whole(part_state.own_state(optimizer, state)))
end

--- What DDP keeps, and the f32 shards of parameters in 16 bits.
function ModelParallelStrategy:state_dict(optimizers)
  local saved, wide = DDP.state_dict(self, optimizers), self.sharding and self.sharding:state_dict()
  if saved and wide then saved.shards = wide.shards end
  return saved or wide or nil
end

function ModelParallelStrategy:load_state_dict(state, optimizers)
  if self.sharding then self.sharding:load_state_dict(state) end
  if state.hook then DDP.load_state_dict(self, state, optimizers) end
end

-- Modules compute as they did before they were computed again, which came after they were divided.
local function end_recomputing(self)
  if self.end_recomputing then self.end_recomputing() end
  self.end_recomputing = nil
end

-- Optimizers of parts become those of whole parameters; rank 0 has their state.
local function join_optimizer(optimizer, whole, state)
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      group.params[i] = whole[parameter] or parameter
    end
  end
  optimizer.state = {}
  if state then optimizer:load_state_dict(state) end
end

--- Makes the module whole, for checkpoints saved after the fit; rank 0 has the complete state of
--- the optimizers.
function ModelParallelStrategy:end_training(optimizers)
  if not self.divides and not active(self) then return end
  local states = {}
  for i, optimizer in ipairs(optimizers) do states[i] = self:optimizer_state(optimizer) or false end
  if self.sharding then self.sharding:leave(true) end
  self:join_stages()
  end_recomputing(self)
  local whole = self.divides and divided_modules.undo(self.module) or {}
  for i, optimizer in ipairs(optimizers) do join_optimizer(optimizer, whole, states[i]) end
  self.divides = false
end

--- Gives each rank what it has of all stages, of a strategy that has such.
function ModelParallelStrategy:join_stages() end

--- After a run that failed the other ranks' parts are gone.
function ModelParallelStrategy:teardown()
  local status = self.divides ~= nil and self.module.trainer.state.status
  local is_lost = status and status ~= "finished" and status ~= "running"
  if active(self) and status ~= "running" then self.sharding:leave(not is_lost) end
  if status ~= "running" then end_recomputing(self) end
  if self.divides and status == "finished" then divided_modules.undo(self.module) end
  if self.divides and is_lost then divided_modules.lose(self.module, name_of(self)) end
  if status ~= "running" then self.sharding = nil end
  self.divides = nil
  DDP.teardown(self)
end

--- Ranks have different parts, if the module is divided, and of what is sharded.
function ModelParallelStrategy:is_replicated(part)
  if active(self) and self.sharding:divides(part) then return false end
  return part == "buffer" or not self.divides
end

--- The ranks of data_ranks.group have the same parts, unless they have different experts.
function ModelParallelStrategy:has_copies(part)
  if active(self) and self.sharding:divides(part) then return false end
  if self.divides and self.expert_parallel_size > 1 then return false end
  return self.divides == true or self:is_replicated(part)
end

return ModelParallelStrategy
