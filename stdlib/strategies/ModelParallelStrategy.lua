--- stdlib/strategies/ModelParallelStrategy.lua: groups of ranks compute one module together, each
--- rank a part of it; the groups are data parallel, as in DDP.
--
-- The ranks are a mesh with a dim for each kind of parallelism (Lightning's names): along
-- data_parallel ranks read different samples, along context_parallel they have parts of the same
-- sequences, along tensor_parallel parts of the same matrices, which lt.parallelize cuts in the
-- module's configure_model. Tensor parallel comes last, so that its ranks are next to each other:
-- it has most traffic. Along expert_parallel, a dim that is there where its size is given, they
-- read different samples too, and have different experts.
--
-- What a rank has of a parameter that is cut is a parameter of its own: gradients are summed over
-- the ranks that have the same part, and the optimizer steps it as any other. The norm of all
-- gradients counts each part once. Parameters that are not cut are the same on all ranks of a
-- group, and get the same gradients there.
local DDP = require "ltrain.strategies.DDP"
local Mesh = require "ltrain.dist.Mesh"
local OptimizerShards = require "ltrain.strategies.sharded.OptimizerShards"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local PartReducer = require "ltrain.dist.PartReducer"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local check_elementwise = require "ltrain.strategies.check_elementwise"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local data_ranks = require "ltrain.dist.data_ranks"
local ddp = require "ltrain.dist.ddp"
local ddp_options = require "ltrain.strategies.ddp_options"
local dist = require "ltrain.dist"
local divided_modules = require "ltrain.parallel.divided_modules"
local divided_sequences = require "ltrain.strategies.divided_sequences"
local errors = require "ltrain.core.errors"
local expert_dims = require "ltrain.strategies.expert_dims"
local gradients_of = require "ltrain.core.gradients_of"
local mesh_sizes = require "ltrain.strategies.mesh_sizes"
local parameters_of = require "ltrain.core.parameters_of"
local part_state = require "ltrain.parallel.part_state"
local parts = require "ltrain.core.parts"
local walk = require "ltrain.core.walk"

local ModelParallelStrategy = DDP:extend("ModelParallelStrategy")

local function check_size(value)
  if value ~= "auto" and not (math.type(value) == "integer" and value >= 1) then
    return ("must be a number of ranks or 'auto': got %s"):format(errors.show(value))
  end
end

local function check_stage(value)
  if value == 0 or value == 1 then return nil end
  if value ~= 2 and value ~= 3 then return ("must be 0 or 1: got %s"):format(value) end
  return ("= %d: beside tensor parallel only the state of optimizers is divided: write stage = 1, "
    .. "or strategies.Sharded"):format(value)
end

local SIZES <const> = {
  data_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "groups of ranks that read different samples; 'auto': as many as there are" },
  tensor_parallel_size = { type = "integer|string", default = "auto", check = check_size,
    doc = "ranks that divide matrices; 'auto': what data_parallel_size leaves, else the ranks of a "
      .. "machine" },
  context_parallel_size = { type = "integer", default = 1, min = 1,
    doc = "ranks that divide sequences" },
  save_distributed_checkpoint = { type = "boolean",
    doc = "Lightning's name for state_dict_type: true is 'sharded', false 'full'" },
  stage = { type = "integer", default = 0, check = check_stage,
    doc = "1: the state of optimizers is divided among the ranks that have the same parts, as by "
      .. "strategies.Sharded; not with experts" },
  expert_parallel_size = { type = "integer", min = 1, doc = "ranks that divide the experts of "
    .. "nn.MoE, along a dim that the mesh has if this is given; not with tensor_parallel" },
  context_parallel_attention = { type = "string", default = "ring", choices = { "ring", "ulysses" },
    doc = "of divided sequences: keys and values go round a ring, or heads are exchanged" },
  sequence_dim = { type = "integer", default = 2, min = 2,
    doc = "the dim of batches' tensors that context_parallel divides: of those that are longest "
      .. "there" },
}

--- Rows of options for a subclass: its own and those of this class.
function ModelParallelStrategy.rows(own)
  local rows = ddp_options.with(SIZES)
  for name, row in next, own or {} do rows[name] = row end
  return rows
end

--- Its options.
ModelParallelStrategy.options = ModelParallelStrategy.rows()

--- The dims of the mesh in their order; of each there is an option `<dim>_size`.
ModelParallelStrategy.dims = { "data_parallel", "context_parallel", "tensor_parallel" }
ModelParallelStrategy.context_parallel_size = 1 -- of a mesh without these dims
ModelParallelStrategy.expert_parallel_size = 1

--- The dims along which ranks have different modules, such as the stages of a pipeline: parameters
--- are not compared along them.
ModelParallelStrategy.stage_dims = {}

local function name_of(self) return "strategies." .. class.of(self).__name end

--- ModelParallelStrategy{data_parallel_size = 2, tensor_parallel_size = 2, ...}
function ModelParallelStrategy:init(options)
  local o, notes = ddp_options.check(options, class.of(self).options, name_of(self))
  self:take_options(o, notes)
  if o.expert_parallel_size then self.dims = expert_dims(name_of(self), o) end
  self.given_sizes = {} -- by dim, as the script gave them
  for _, dim in ipairs(self.dims) do
    self.given_sizes[dim] = o[dim .. "_size"]
    self[dim .. "_size"] = o[dim .. "_size"]
  end
  if o.save_distributed_checkpoint ~= nil then
    self.state_dict_type = o.save_distributed_checkpoint and "sharded" or "full"
  end
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
end

-- The names of the dims for which keep(name) is true, and that have several ranks; if there is none
-- the first that is kept.
local function dims_where(self, keep)
  local list, first = {}, nil
  for _, dim in ipairs(self.dims) do
    if keep(dim) then
      first = first or dim
      if self[dim .. "_size"] > 1 then list[#list + 1] = dim end
    end
  end
  if #list == 0 then list[1] = first end
  return list
end

local function has(list, value)
  for _, one in ipairs(list) do
    if one == value then return true end
  end
  return false
end

-- Sums are over these dims: of gradients, weights and metrics.
local SUMMED <const> = { data_parallel = true, expert_parallel = true, context_parallel = true }

-- Ranks have different samples along these.
local READ <const> = { data_parallel = true, expert_parallel = true }

--- Makes the mesh, and says which of its ranks read samples of their own.
function ModelParallelStrategy:setup_mesh()
  local sizes = {}
  for i, dim in ipairs(self.dims) do sizes[i] = self[dim .. "_size"] end
  local mesh = Mesh(sizes, self.dims)
  local function group(keep) return mesh:group(table.unpack(dims_where(self, keep))) end
  self.device_mesh = mesh
  -- Those that have the same names of parameters; those that have the same parts; those that have
  -- the parts of one module.
  self.same_modules = group(function(dim) return not has(self.stage_dims, dim) end)
  local function divides(dim) return not SUMMED[dim] or dim == "expert_parallel" end
  self.same_parts = group(function(dim) return not divides(dim) end)
  self.one_module = group(divides)
  local reads = dims_where(self, function(dim) return READ[dim] end)
  local sums = dims_where(self, function(dim) return SUMMED[dim] end)
  local scope = data_ranks.use(mesh, reads, sums)
  return setmetatable({}, { __close = function()
    local _ <close> = scope
    self.device_mesh, self.same_modules, self.same_parts, self.one_module = nil, nil, nil, nil
  end })
end

-- Ranks.

-- Parameters of a module that are cut, by themselves; nil: none is.
local function cut_parameters(module)
  local found
  for _, item in ipairs((walk.tensors(module))) do
    if cuts.of(item.value) then
      found = found or {}
      found[item.value] = true
      found[#found + 1] = item.value
    end
  end
  return found
end

--- The ranks that have the same module get the parameters and buffers of the first of them; of
--- parameters that are cut, those that have the same parts.
function ModelParallelStrategy:share_module(module)
  local cut = cut_parameters(module)
  self.divides = self.one_module:world_size() > 1 and (cut ~= nil or #self.stage_dims > 0)
  broadcast_parameters.module(module, cut, self.same_modules)
  broadcast_parameters.tensors(cut or {}, self.same_parts)
end

function ModelParallelStrategy:sync_buffers(module)
  if self.world_size > 1 and self.broadcast_buffers ~= false then
    broadcast_parameters.buffers(module, self.same_modules)
  end
end

-- Steps.

-- Refuses callbacks that read on one rank what this divides.
local function check_callbacks(self, trainer)
  for _, callback in ipairs(trainer.callbacks) do
    local reads = callback.reads_whole or callback.averages_parameters and "parameters"
    if reads then
      errors.blame("%s: the callback %s needs whole %s, of which a rank has parts: remove it",
        name_of(self), class.of(callback).__name, reads)
    end
  end
end

function ModelParallelStrategy:setup_module(module)
  if self.divides then check_callbacks(self, module.trainer) end
  return DDP.setup_module(self, module)
end

--- See DDP; gradients of experts are summed over the ranks that have the same.
function ModelParallelStrategy:configure_ddp(module)
  local has_parts = PartReducer.is_needed(module:parameters())
  return ddp.class(module, { bucket_cap_mb = self.bucket_cap_mb, comm_hook = self.comm_hook,
    group = data_ranks.group(), part_group = has_parts and self.same_parts or nil })
end

--- Refuses optimizers that compute with whole parameters; divides the state of others (stage 1).
function ModelParallelStrategy:setup_optimizers(optimizers)
  for _, optimizer in ipairs(self.divides and optimizers or {}) do
    for _, parameter in ipairs(parameters_of(optimizer)) do
      if cuts.of(parameter) then
        check_elementwise(optimizer, name_of(self), "parts")
        break
      end
    end
  end
  if self.stage == 1 and self.same_parts:world_size() > 1 then
    self.optimizer_shards = self.optimizer_shards or OptimizerShards(self.module, self.same_parts,
      buckets.bytes(self.bucket_cap_mb), name_of(self))
    for _, optimizer in ipairs(optimizers) do self.optimizer_shards:add(optimizer) end
  end
  return optimizers
end

-- What has shards of an optimizer's state; nil: each rank has all of it.
local function shards_of(self, optimizer)
  local shards = self.optimizer_shards
  return shards and shards.of[optimizer] and shards
end

--- With stage 1 steps this rank's slices, and gathers the new parameters.
function ModelParallelStrategy:optimizer_step(optimizer, update)
  local shards = shards_of(self, optimizer)
  if shards then shards:step(optimizer, update) else update() end
end

-- The gradients that this rank counts in a norm: of what is not cut the first rank's.
local function counted(self, optimizer)
  local groups, is_first = {}, self.one_module:rank() == 0
  for g, group in ipairs(self:param_groups(optimizer)) do
    groups[g] = { params = cuts.counted(group.params, is_first) }
  end
  return gradients_of(groups)
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
  if not self.divides then return DDP.grad_norm(self, optimizer, p) end
  local gradients = counted(self, optimizer)
  table.insert(gradients, c.zeros({ 1 }, { dtype = "f64", device = self.root_device }))
  local norms = collectives.all_gather(c.grads_norm(gradients, p), { group = self.one_module })
  local norm = c.grads_norm({ norms }, p)
  return is_wide(optimizer) and norm or norm:to "f32"
end

--- In the shape of the whole: this rank's part, at its place; of what is not cut the first rank's.
function ModelParallelStrategy:accumulated_gradient(parameter)
  if not self.divides then return parameter.grad end
  local cut, grad = cuts.of(parameter), parameter.grad
  if not cut and self.device_mesh:rank "tensor_parallel" == 0 then return grad end
  local whole = c.zeros(cuts.shape(parameter), { dtype = parameter.dtype,
    device = parameter.device })
  if cut and grad then cuts.put(cut, whole, cut.rank, grad) end
  return whole
end

function ModelParallelStrategy:has_accumulated_gradient(parameter) return parameter.grad ~= nil end

-- State.

--- This rank's parts of the parameters that are cut, and the rest.
function ModelParallelStrategy:module_parts(module)
  return self.divides and part_state.of_module(module) or DDP.module_parts(self, module)
end

function ModelParallelStrategy:optimizer_parts(optimizer)
  local shards = shards_of(self, optimizer)
  if shards then return shards:parts(optimizer) end
  return self.divides and part_state.of_optimizer(optimizer) or DDP.optimizer_parts(self, optimizer)
end

--- Each rank loads its parts.
function ModelParallelStrategy:load_optimizer_state(optimizer, state)
  local shards = shards_of(self, optimizer)
  if shards then return shards:load(optimizer, state) end
  optimizer:load_state_dict(parts.whole(part_state.own_state(optimizer, state)))
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
  if not self.divides and not self.optimizer_shards then return end
  local states = {}
  for i, optimizer in ipairs(optimizers) do states[i] = self:optimizer_state(optimizer) or false end
  if self.optimizer_shards then self.optimizer_shards:leave() end
  self.optimizer_shards = nil
  local whole = self.divides and divided_modules.undo(self.module) or {}
  for i, optimizer in ipairs(optimizers) do join_optimizer(optimizer, whole, states[i]) end
  self.divides = false
end

local LOST <const> = "parameter '%s' is incomplete: a run under strategies.ModelParallelStrategy "
  .. "failed, and the other ranks ended with their parts of it: make the module anew, and resume "
  .. "from a checkpoint"

--- After a run that failed the other ranks' parts are gone.
function ModelParallelStrategy:teardown()
  local status = self.divides ~= nil and self.module.trainer.state.status
  local is_lost = status and status ~= "finished" and status ~= "running"
  if self.divides and status == "finished" then divided_modules.undo(self.module) end
  if self.divides and is_lost then divided_modules.lose(self.module, LOST) end
  if self.optimizer_shards then self.optimizer_shards:leave(is_lost) end
  self.divides, self.optimizer_shards = nil, nil
  DDP.teardown(self)
end

--- Ranks have different parts, if the module is divided, and of the state with stage 1.
function ModelParallelStrategy:is_replicated(part)
  if part == "optimizer" and self.optimizer_shards then return false end
  return part == "buffer" or not self.divides
end

--- The ranks of data_ranks.group have the same parts, unless they have different experts.
function ModelParallelStrategy:has_copies(part)
  if part == "optimizer" and self.optimizer_shards then return false end
  if self.divides and self.expert_parallel_size > 1 then return false end
  return self.divides == true or self:is_replicated(part)
end

--- Of what is saved the ranks of the first replica take their parts; of experts those of each part.
function ModelParallelStrategy:takes_gradient(parameter, is_first)
  if PartReducer.is_part(parameter) then return self.same_parts:rank() == 0 end
  return is_first
end

-- Sequences (divided_sequences.lua).

function ModelParallelStrategy:divide_batch(batch) return divided_sequences.divide(self, batch) end

function ModelParallelStrategy:forward_scope()
  return divided_sequences.scope(self, DDP.forward_scope(self))
end

function ModelParallelStrategy:backward_scope()
  return divided_sequences.scope(self, DDP.backward_scope(self))
end

return ModelParallelStrategy
