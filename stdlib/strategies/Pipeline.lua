--- stdlib/strategies/Pipeline.lua: pipeline parallel training: the blocks of a Sequential or
--- ModuleList are divided into stages, one a rank, through which the microbatches of a batch go one
--- after the other.
--
-- The script is that of one process. Each stage runs the module's steps with its own blocks:
-- pipeline/BlockChain.lua says how their calls are cut, pipeline/Engine.lua how microbatches run,
-- pipeline/schedules.lua in which order, pipeline/Division.lua which rank has which parameters. The
-- loss is known on the last stage, and travels back with the gradients of the last microbatch. With
-- more ranks than stages there are several pipelines, which are data parallel as in DDP.
--
-- A stage may be several ranks, which divide its matrices (tensor_parallel) or sequences
-- (context_parallel) as under ModelParallelStrategy. Each of them sends messages to its counterpart
-- in the next stage.
--
-- With a sharding_stage the ranks that have the same stage shard it (sharded/Sharding.lua), from
-- when the stages are cut. Each microbatch's gradients are then reduced by themselves; what several
-- stages have stays whole until they have added it up.
--
-- Where stages are cut by time, the first batch of a fit (of an accumulation window) runs on each
-- rank as a whole, which measures the blocks: until its step the ranks have the whole module.
local BlockChain = require "ltrain.strategies.pipeline.BlockChain"
local BlockTimes = require "ltrain.strategies.pipeline.BlockTimes"
local DDP = require "ltrain.strategies.DDP"
local Division = require "ltrain.strategies.pipeline.Division"
local Engine = require "ltrain.strategies.pipeline.Engine"
local ModelParallelStrategy = require "ltrain.strategies.ModelParallelStrategy"
local Reducer = require "ltrain.dist.Reducer"
local blocks = require "ltrain.strategies.pipeline.blocks"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local c = require "ltrain.c"
local checks = require "ltrain.strategies.model_parallel.checks"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local module_state = require "ltrain.nn.module_state"
local part_state = require "ltrain.parallel.part_state"
local pipeline_options = require "ltrain.strategies.pipeline.pipeline_options"
local pipeline_sizes = require "ltrain.strategies.pipeline.pipeline_sizes"
local refusals = require "ltrain.strategies.pipeline.refusals"
local sharding_options = require "ltrain.strategies.sharded.options"
local stage_ends = require "ltrain.strategies.pipeline.stage_ends"
local stage_state = require "ltrain.strategies.pipeline.stage_state"
local walk = require "ltrain.core.walk"

local Pipeline = ModelParallelStrategy:extend("Pipeline")

local WHERE <const> = "strategies.Pipeline"

--- Its options.
Pipeline.options = pipeline_options.rows

Pipeline.dims = { "data_parallel", "pipeline_parallel", "context_parallel", "tensor_parallel" }

--- Pipeline{stages = 4, microbatches = 16, schedule = "1f1b", ...}
function Pipeline:init(options)
  local o, notes = pipeline_options.check(options, WHERE)
  self:take_options(o, notes)
  self.given_sizes = { pipeline_parallel = o.stages, data_parallel = o.data_parallel_size,
    context_parallel = o.context_parallel_size, tensor_parallel = o.tensor_parallel_size }
  for dim, size in next, self.given_sizes do self[dim .. "_size"] = size end
  self.context_parallel_attention = o.context_parallel_attention
  self.sequence_dim = o.sequence_dim
  self.schedule, self.microbatches, self.balance = o.schedule, o.microbatches, o.balance
  self.chunks = o.schedule == "interleaved" and o.chunks or 1
  self.container_name, self.split, self.stage = o.module, o.split, o.sharding_stage
  sharding_options.take(self, o)
end

-- Ranks.

--- The size of each dim of the mesh for so many ranks, by name. One rank has all stages, whatever
--- the script asks for.
function Pipeline:mesh_sizes(ranks, _) return pipeline_sizes(WHERE, self.given_sizes, ranks) end

--- See ModelParallelStrategy; with groups of the ranks of one pipeline, and of one stage.
function Pipeline:setup_mesh()
  local scope = ModelParallelStrategy.setup_mesh(self)
  local mesh = self.device_mesh
  self.one_pipeline = mesh:group "pipeline_parallel"
  self.one_stage = mesh:group("data_parallel", "context_parallel", "tensor_parallel")
  self.stage_of = setmetatable({}, { __mode = "k" }) -- a group -> those of it with this stage
  return setmetatable({}, { __close = function()
    local _ <close> = scope
    self.one_pipeline, self.one_stage, self.stage_of = nil, nil, nil
  end })
end

--- All stages begin with the parts of the first one.
function Pipeline:share_module(module)
  ModelParallelStrategy.share_module(self, module)
  local divided = {}
  for _, item in ipairs((walk.tensors(module))) do
    if cuts.of(item.value) then divided[#divided + 1] = item.value end
  end
  broadcast_parameters.tensors(divided, self.one_pipeline)
end

local function virtual_stages(self) return self.pipeline_parallel_size * self.chunks end

--- Refuses optimizers that compute with the parameters of all stages.
function Pipeline:setup_optimizers(optimizers)
  for _, optimizer in ipairs(optimizers) do refusals.check_optimizer(optimizer) end
  return ModelParallelStrategy.setup_optimizers(self, optimizers)
end

-- The module.

-- From here on this rank has its stage alone. All ranks call it.
local function divide(self, costs)
  local stages = self.pipeline_parallel_size
  local ends = stage_ends.find(#self.chain.blocks, virtual_stages(self), self.split, costs)
  self.ends = ends
  self.engine = Engine(self.chain, { schedule = self.schedule, stages = stages,
    chunks = self.chunks, ends = ends, group = self.one_pipeline, device = self.root_device })
  self.division = Division(self.module, self.chain.places, function(place)
    return (stage_ends.stage_at(ends, place) - 1) % stages
  end, self.one_pipeline)
  self.division:release()
  self.divides = true
  if self.sharding then self.sharding:divide(self.module, self.stage == 1, self.division) end
end

-- The sharding of a module that is divided; nil: there is none.
local function active(self)
  local sharding = self.sharding
  return sharding and sharding.sharded and sharding or nil
end

--- Stages are sharded when they are cut, of a module that is whole.
function Pipeline:shard_module(module)
  if self.sharding then checks.sharding(WHERE, module, self.stage) end
end

function Pipeline:materialize(module) DDP.materialize(self, module) end

--- Follows the calls of the blocks, and divides them unless they are to be measured first.
function Pipeline:setup_module(module)
  module = ModelParallelStrategy.setup_module(self, module)
  if self.chain then return module end
  local trains = module.trainer.state.fn == "fit"
  if trains then refusals.check_run(module, self.schedule) end
  self.chain = BlockChain(blocks(module, self.container_name, virtual_stages(self)))
  self.whole = Engine(self.chain, { schedule = "1f1b", stages = 1, chunks = 1, ends = {},
    device = self.root_device })
  if self.pipeline_parallel_size == 1 and not self.sharding then return module end
  self.stage_reducer = Reducer { bucket_cap_mb = self.bucket_cap_mb, group = self.one_pipeline }
  if self.split or self.balance == "parameters" or not trains
    or self.pipeline_parallel_size == 1 then
    divide(self, self.chain:numbers_of_parameters())
  else
    self.times = BlockTimes(#self.chain.blocks)
    self.whole.times = self.times
  end
  return module
end

-- Measured costs, the same on all ranks: what they have measured together.
local function agreed_costs(self)
  local costs, any = collectives.add(self.times:costs()), false
  for _, cost in ipairs(costs) do any = any or cost > 0 end
  return any and costs or self.chain:numbers_of_parameters()
end

-- Steps.

local function engine_of(self) return self.engine or self.whole end

-- The ranks with this stage among those that have a sample in this step (`group`; nil: all do). All
-- of these call it before their stages wait for each other.
local function ranks_of_stage(self, group)
  if not group then return self.one_stage end
  local known = self.stage_of
  known[group] = known[group] or group:split(self.one_pipeline:rank())
  return known[group]
end

-- Until the result is closed a step runs: collectives of the script that name no group are among
-- the ranks that have the same stage.
local function enter_step(self)
  self.is_in_step = true
  local outer = collectives.use(nil)
  collectives.use(ranks_of_stage(self, outer))
  return setmetatable({}, { __close = function()
    self.is_in_step = false
    collectives.use(outer)
  end })
end

--- Runs a step of the module, or this stage's part of it.
function Pipeline:run_step(fn, module, ...)
  local engine = engine_of(self)
  if not engine then return fn(module, ...) end
  if module.trainer.training then refusals.check_run(module, self.schedule) end
  local _ <close> = enter_step(self)
  return engine:step(fn, module, ...)
end

--- Whether what the running step logs counts: on the last stage, which alone runs all of it.
function Pipeline:logs_here()
  if not self.is_in_step or self.pipeline_parallel_size == 1 then return true end
  if not self.engine then return self.one_pipeline:rank() == self.pipeline_parallel_size - 1 end
  return self.engine.is_final
end

-- Runs pass(), a backward: gradients that are sharded are reduced meanwhile. `what`: see
-- ShardedModule.backward.
local function walk_sharded(self, pass, what)
  local sharding = active(self)
  if sharding then sharding:backward(pass, what) else pass() end
end

--- Runs the microbatches of a batch: see Engine.train.
function Pipeline:run_microbatches(work)
  local group = collectives.use(nil)
  collectives.use(group)
  ranks_of_stage(self, group)
  return engine_of(self):train(setmetatable({
    backward_from = function(pass, what)
      work.backward_from(function() walk_sharded(self, pass, what) end)
    end,
    weights = function(pass) walk_sharded(self, pass, "weights") end,
    visit_rest = function()
      if c.dist.unvisited() > 0 then walk_sharded(self, c.dist.visit_rest) end
    end,
  }, { __index = work }))
end

--- The backward of a loss; a schedule may leave gradients of weights for later.
function Pipeline:backward(loss, weight, ...)
  local engine, more = self.engine, table.pack(...)
  if engine and engine.divided then
    walk_sharded(self, function() engine:backward_of_inputs(loss * weight) end, "inputs")
  else
    walk_sharded(self, function()
      DDP.backward(self, loss, weight, table.unpack(more, 1, more.n))
    end)
  end
end

--- Divides the module when it has been measured, and adds up gradients of parameters that several
--- stages have; returns how many of this rank's gradients are nil.
function Pipeline:after_last_backward(optimizer, _)
  if self.times and not self.division then
    divide(self, agreed_costs(self))
    stage_state.drop_foreign(optimizer, self.division)
    if self.sharding then self.sharding:add { optimizer } end
  end
  if not self.division then return nil end
  local common = stage_state.parameters(optimizer, self.division, true)
  if #common > 0 then self.stage_reducer:reduce(common, 1.0, #common, optimizer) end
  return c.dist.missing(stage_state.parameters(optimizer, self.division))
end

--- Replaces the gradients by their weighted mean over all pipelines.
function Pipeline:reduce_gradients(optimizer, total, missing, weight)
  if not self.division then
    return ModelParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
  local own, sharding = stage_state.parameters(optimizer, self.division), active(self)
  if sharding and not sharding.has_whole_gradients then
    return sharding:reduce_gradients(own, total)
  end
  self.ddp:sync(own, total, missing, optimizer)
end

--- See ModelParallelStrategy; each parameter on the stage that speaks for it.
function Pipeline:counts_shard(parameter)
  return self.division:speaks_for(parameter)
    and ModelParallelStrategy.counts_shard(self, parameter)
end

--- What is counted in a norm: each parameter once, on the stage that speaks for it.
function Pipeline:counted_groups(optimizer)
  local groups, division = {}, self.division
  local is_first = self.device_mesh:rank "tensor_parallel" == 0
  local function counts(cut) return is_first or cut ~= nil end
  for g, group in ipairs(self:param_groups(optimizer)) do
    local own = {}
    for _, parameter in ipairs(group.params) do
      if not division or division:speaks_for(parameter) then own[#own + 1] = parameter end
    end
    groups[g] = { params = cuts.counted(own, counts) }
  end
  return groups
end

--- What this rank has gathered of a gradient that is a sum over all; of a module that is still
--- whole the last rank's counts.
function Pipeline:accumulated_gradient(parameter)
  local is_whole = self.division == nil and self.pipeline_parallel_size > 1
  if is_whole and self.one_pipeline:rank() < self.pipeline_parallel_size - 1 then return nil end
  return ModelParallelStrategy.accumulated_gradient(self, parameter)
end

--- Of each parameter one stage takes the gradient that was saved; of a module that is still whole
--- all ranks.
function Pipeline:takes_gradient(parameter, is_first)
  return is_first and (self.division == nil or self.division:speaks_for(parameter))
end

--- Copies buffers between the ranks of a stage.
function Pipeline:sync_buffers(module)
  if not self.division then return ModelParallelStrategy.sync_buffers(self, module) end
  if self.broadcast_buffers ~= false then self.division:sync_buffers(self.one_stage) end
end

--- Gives all ranks what they have of all stages until the result is closed: of parameters that
--- tensor_parallel divides their parts.
function Pipeline:gather_parameters()
  if not self.division then return nil end
  local shards = active(self) and self.sharding:gather()
  local stages = self.division:gather()
  return setmetatable({}, { __close = function()
    local _ <close> = shards or nil
    local _ <close> = stages
  end })
end

-- State.

--- What this stage has of the module's state.
function Pipeline:module_parts(module)
  local division = self.division
  if not division then return ModelParallelStrategy.module_parts(self, module) end
  local own = division:own_state(module:state_dict())
  if active(self) then return self.sharding:module_parts(module, own) end
  return part_state.of_module(module, own)
end

--- Each rank loads what it has.
function Pipeline:load_module_state(module, state)
  local division = self.division
  if not division then return ModelParallelStrategy.load_module_state(self, module, state) end
  module_state.load_by(module, state, function(own, source)
    if not division:has(own) then return end
    if active(self) then self.sharding:copy_into(own, source) else cuts.copy(own, source) end
  end)
end

function Pipeline:load_optimizer_state(optimizer, state)
  if self.division and type(state.state) == "table" then
    state = stage_state.select(optimizer, state, self.division)
  end
  ModelParallelStrategy.load_optimizer_state(self, optimizer, state)
end

--- A stage has its own parameters, gradients, buffers and state of optimizers; its ranks have parts
--- of a module that is divided.
function Pipeline:is_replicated(part)
  return self.division == nil and ModelParallelStrategy.is_replicated(self, part)
end

--- Values are compared while the ranks have the whole module.
function Pipeline:has_copies(part)
  return self.division == nil and ModelParallelStrategy.has_copies(self, part)
end

-- The end.

-- Calls of the blocks are the module's own again.
local function leave(self)
  if self.chain then self.chain:release() end
  self.chain, self.whole, self.engine, self.division, self.times = nil, nil, nil, nil, nil
end

--- Gives all ranks of a pipeline all stages.
function Pipeline:join_stages()
  if self.division then self.division:join() end
  leave(self)
end

--- After a run that failed the other ranks' stages are gone.
function Pipeline:teardown()
  local run = self.module and self.module.trainer
  local status = run and run.state.status
  if self.division and status == "finished" then
    if active(self) then self.sharding:leave(true) end
    self.division:join()
  elseif self.division and status ~= "running" then
    self.division:lose()
    for _, optimizer in ipairs(run and run.optimizers or {}) do
      if next(optimizer.state) ~= nil then stage_state.lose(optimizer, WHERE) end
    end
  end
  if status ~= "running" then leave(self) end
  ModelParallelStrategy.teardown(self)
end

return Pipeline
