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
-- Where stages are cut by time, the first batch of a fit (of an accumulation window) runs on each
-- rank as a whole, which measures the blocks: until its step the ranks have the whole module.
local BlockChain = require "ltrain.strategies.pipeline.BlockChain"
local BlockTimes = require "ltrain.strategies.pipeline.BlockTimes"
local DDP = require "ltrain.strategies.DDP"
local Division = require "ltrain.strategies.pipeline.Division"
local Engine = require "ltrain.strategies.pipeline.Engine"
local ModelParallelStrategy = require "ltrain.strategies.ModelParallelStrategy"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local Reducer = require "ltrain.dist.Reducer"
local blocks = require "ltrain.strategies.pipeline.blocks"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local gradients_of = require "ltrain.core.gradients_of"
local module_state = require "ltrain.nn.module_state"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"
local partition = require "ltrain.strategies.pipeline.partition"
local pipeline_options = require "ltrain.strategies.pipeline.pipeline_options"
local refusals = require "ltrain.strategies.pipeline.refusals"

local Pipeline = ModelParallelStrategy:extend("Pipeline")

local WHERE <const> = "strategies.Pipeline"

--- Its options.
Pipeline.options = pipeline_options.rows

Pipeline.dims = { "data_parallel", "pipeline_parallel" }

-- Dims of ModelParallelStrategy that its mesh does not have.
Pipeline.context_parallel_size, Pipeline.tensor_parallel_size = 1, 1

--- Pipeline{stages = 4, microbatches = 16, schedule = "1f1b", ...}
function Pipeline:init(options)
  local o, notes = pipeline_options.check(options, WHERE)
  self:take_options(o, notes)
  self.given_sizes = { pipeline_parallel = o.stages, data_parallel = o.data_parallel_size }
  self.schedule, self.microbatches, self.balance = o.schedule, o.microbatches, o.balance
  self.chunks = o.schedule == "interleaved" and o.chunks or 1
  self.container_name, self.split = o.module, o.split
end

-- Ranks.

--- The number of pipelines and of their stages for so many ranks. One rank has all stages, whatever
--- the script asks for.
function Pipeline:mesh_sizes(ranks, _)
  if ranks == 1 then return { pipeline_parallel = 1, data_parallel = 1 } end
  local stages, pipelines = self.given_sizes.pipeline_parallel, self.given_sizes.data_parallel
  if stages == "auto" then stages = pipelines == "auto" and ranks or ranks // pipelines end
  if pipelines == "auto" then pipelines = ranks // stages end
  if stages * pipelines ~= ranks or ranks == 0 then
    errors.blame("%s: stages = %s, data_parallel_size = %s: there are %d ranks", WHERE,
      self.given_sizes.pipeline_parallel, self.given_sizes.data_parallel, ranks)
  end
  return { pipeline_parallel = stages, data_parallel = pipelines }
end

local function virtual_stages(self) return self.pipeline_parallel_size * self.chunks end

--- Refuses optimizers that compute with the parameters of all stages.
function Pipeline:setup_optimizers(optimizers)
  for _, optimizer in ipairs(optimizers) do refusals.check_optimizer(optimizer) end
  return optimizers
end

-- The module.

local function numbers_of_parameters(chain)
  local costs = {}
  for i, block in ipairs(chain.blocks) do costs[i] = block:num_parameters() + 1 end
  return costs
end

-- After which blocks the stages end, by what each block costs, or as the script says.
local function ends_of(self, costs)
  local virtual = virtual_stages(self)
  if not self.split then return partition(costs, virtual) end
  local last = self.split[#self.split]
  if #self.split ~= virtual - 1 or last and last >= #self.chain.blocks then
    errors.blame("%s: split must have %d numbers below %d, the number of blocks, for %d stages: "
      .. "got {%s}", WHERE, virtual - 1, #self.chain.blocks, virtual,
      table.concat(self.split, ", "))
  end
  return self.split
end

local function stage_at(ends, place)
  for g, after in ipairs(ends) do
    if place <= after then return g end
  end
  return #ends + 1
end

-- From here on this rank has its stage alone. All ranks call it.
local function divide(self, costs)
  local stages, ends = self.pipeline_parallel_size, ends_of(self, costs)
  self.ends = ends
  self.engine = Engine(self.chain, { schedule = self.schedule, stages = stages,
    chunks = self.chunks, ends = ends, group = self.one_module, device = self.root_device })
  self.division = Division(self.module, self.chain.places, function(place)
    return (stage_at(ends, place) - 1) % stages
  end, self.one_module)
  self.division:release()
end

--- Follows the calls of the blocks, and divides them unless they are to be measured first.
function Pipeline:setup_module(module)
  module = DDP.setup_module(self, module)
  if self.chain then return module end
  local trains = module.trainer.state.fn == "fit"
  if trains then refusals.check_run(module, self.schedule) end
  self.chain = BlockChain(blocks(module, self.container_name, virtual_stages(self)))
  self.whole = Engine(self.chain, { schedule = "1f1b", stages = 1, chunks = 1, ends = {},
    device = self.root_device })
  if self.pipeline_parallel_size == 1 then return module end
  self.stage_reducer = Reducer { bucket_cap_mb = self.bucket_cap_mb, group = self.one_module }
  if self.split or self.balance == "parameters" or not trains then
    divide(self, numbers_of_parameters(self.chain))
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
  return any and costs or numbers_of_parameters(self.chain)
end

-- Steps.

local function engine_of(self) return self.engine or self.whole end

-- Until the result is closed a step runs: collectives of the script that name no group are among
-- the ranks that have the same stage.
local function enter_step(self)
  self.is_in_step = true
  local outer = collectives.use(self.same_parts)
  if outer then collectives.use(outer) end -- those of them that have a sample
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
  if not self.engine then return self.one_module:rank() == self.pipeline_parallel_size - 1 end
  return self.engine.is_final
end

--- Runs the microbatches of a batch: see Engine.train.
function Pipeline:run_microbatches(work) return engine_of(self):train(work) end

--- The backward of a loss; a schedule may leave gradients of weights for later.
function Pipeline:backward(loss, weight, ...)
  local engine = self.engine
  if not (engine and engine.divided) then return DDP.backward(self, loss, weight, ...) end
  engine:backward_of_inputs(loss * weight)
end

-- The parameters of an optimizer that this rank has; with `common` those of them that all stages
-- have.
local function own_parameters(self, optimizer, common)
  local list, division = parameters_of(optimizer), self.division
  if not division then return common and {} or list end
  local own = {}
  for _, parameter in ipairs(list) do
    local is_wanted = division:has(parameter)
    if common then is_wanted = division:is_common(parameter) end
    if is_wanted then own[#own + 1] = parameter end
  end
  return own
end

-- What an optimizer keeps for parameters that other ranks have: it was loaded when the module was
-- whole.
local function drop_foreign_state(self, optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if not self.division:has(parameter) then optimizer.state[parameter] = nil end
  end
end

--- Divides the module when it has been measured, and adds up gradients of parameters that several
--- stages have; returns how many of this rank's gradients are nil.
function Pipeline:after_last_backward(optimizer, _)
  if self.times and not self.division then
    divide(self, agreed_costs(self))
    drop_foreign_state(self, optimizer)
  end
  if not self.division then return nil end
  local common = own_parameters(self, optimizer, true)
  if #common > 0 then self.stage_reducer:reduce(common, 1.0, #common, optimizer) end
  return c.dist.missing(own_parameters(self, optimizer))
end

--- Replaces the gradients by their weighted mean over all pipelines.
function Pipeline:reduce_gradients(optimizer, total, missing, weight)
  if not self.ddp then
    return ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  end
  self.ddp:sync(own_parameters(self, optimizer), total, missing, optimizer)
end

--- The norm over all stages, each parameter once. Partial norms are f64, so that rounding to the
--- gradients' dtype comes last, as on one rank.
function Pipeline:grad_norm(optimizer, p)
  if not self.division then return DDP.grad_norm(self, optimizer, p) end
  local own, is_f64 = { params = {} }, false
  for _, parameter in ipairs(parameters_of(optimizer)) do
    is_f64 = is_f64 or parameter.dtype == "f64"
    if self.division:speaks_for(parameter) then table.insert(own.params, parameter) end
  end
  local gradients = gradients_of { own }
  table.insert(gradients, c.zeros({ 1 }, { dtype = "f64", device = self.root_device }))
  local part = c.grads_norm(gradients, p)
  local norm = c.grads_norm({ collectives.all_gather(part, { group = self.one_module }) }, p)
  return is_f64 and norm or norm:to "f32"
end

--- What this rank has gathered of a gradient that is a sum over all; of a module that is still
--- whole the last rank's counts.
function Pipeline:accumulated_gradient(parameter)
  local is_whole = self.division == nil and self.pipeline_parallel_size > 1
  if is_whole and self.one_module:rank() < self.pipeline_parallel_size - 1 then return nil end
  return parameter.grad
end

--- Of each parameter one stage takes the gradient that was saved; of a module that is still whole
--- all ranks.
function Pipeline:takes_gradient(parameter, is_first)
  return is_first and (self.division == nil or self.division:speaks_for(parameter))
end

--- Copies buffers between the ranks that have the same stage.
function Pipeline:sync_buffers(module)
  if not self.division then return ModelParallelStrategy.sync_buffers(self, module) end
  if self.broadcast_buffers ~= false then self.division:sync_buffers(self.same_parts) end
end

--- Gives all ranks all parameters until the result is closed.
function Pipeline:gather_parameters() return self.division and self.division:gather() or nil end

-- State.

--- What this stage has of the module's state.
function Pipeline:module_parts(module)
  local state = module:state_dict()
  return self.division and self.division:own_state(state) or state
end

--- Each rank loads what it has.
function Pipeline:load_module_state(module, state)
  local division = self.division
  if not division then return ModelParallelStrategy.load_module_state(self, module, state) end
  module_state.load_by(module, state, function(own, source)
    if division:has(own) then parts.copy(own, source, 0) end
  end)
end

-- The part of a saved state of an optimizer that is of this rank's parameters.
local function own_state(self, optimizer, saved)
  local own, division = {}, self.division
  for key, value in next, saved do own[key] = value end
  own.state = {}
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local name = group.names[i]
      if division:has(parameter) then own.state[name] = saved.state[name] end
    end
  end
  return own
end

function Pipeline:load_optimizer_state(optimizer, state)
  if self.division and type(state.state) == "table" then
    state = own_state(self, optimizer, state)
  end
  ModelParallelStrategy.load_optimizer_state(self, optimizer, state)
end

--- A stage has its own parameters, gradients, buffers and state of optimizers.
function Pipeline:is_replicated(_) return self.division == nil end

--- Values are compared while the ranks have the whole module.
function Pipeline:has_copies(_) return self.division == nil end

-- The end.

-- Calls of the blocks are the module's own again.
local function leave(self)
  if self.chain then self.chain:release() end
  self.chain, self.whole, self.engine, self.division, self.times = nil, nil, nil, nil, nil
end

--- Gives all ranks the whole module, and rank 0 the whole state of the optimizers, for checkpoints
--- saved after the fit.
function Pipeline:end_training(optimizers)
  if not self.division then return end
  for _, optimizer in ipairs(optimizers) do
    local whole = self:optimizer_state(optimizer)
    optimizer.state = {}
    if whole then optimizer:load_state_dict(whole) end
  end
  self.division:join()
  leave(self)
end

-- Stands for a state whose parts on other ranks are lost.
local function lose_state(optimizer)
  local function refuse()
    errors.blame("optim.%s: its state is incomplete: a fit under %s failed, and the other ranks "
      .. "ended with their stages: resume from a checkpoint with ckpt_path, or create a new "
      .. "optimizer", class.of(optimizer).__name, WHERE)
  end
  optimizer.state = setmetatable({}, { __index = refuse, __newindex = refuse, __pairs = refuse })
end

--- After a run that failed the other ranks' stages are gone.
function Pipeline:teardown()
  local run = self.module and self.module.trainer
  local status = run and run.state.status
  if self.division and status == "finished" then
    self.division:join()
  elseif self.division and status ~= "running" then
    self.division:lose()
    for _, optimizer in ipairs(run and run.optimizers or {}) do
      if next(optimizer.state) ~= nil then lose_state(optimizer) end
    end
  end
  if status ~= "running" then leave(self) end
  ModelParallelStrategy.teardown(self)
end

return Pipeline
