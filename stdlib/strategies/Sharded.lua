--- stdlib/strategies/Sharded.lua: data parallel training whose state is divided among the ranks
--- (ZeRO: Rajbhandari et al. 2020; PyTorch's FSDP).
--
-- On N ranks each has 1 / N of the optimizers' state (stage 1), and of the gradients (stage 2), and
-- of the parameters (stage 3). Gradients are reduced to the rank that has their part, which updates
-- its slices of the parameters; the new parameters are gathered: with stages 1 and 2 after the
-- step, with stage 3 a unit of the module at a time where it is computed with. The result is that
-- of DDP, if the optimizer updates each element independently (`elementwise` of its class; true for
-- those of lt.optim but LBFGS, Muon and the like). With replicas, N is the number of ranks in each
-- (sharded/Replicas.lua).
--
-- Checkpoints are complete, like DDP's, and resume on any number of ranks, also with DDP. Gathering
-- them takes all ranks: every rank must call trainer:save_checkpoint, and after an error no
-- checkpoint is saved (`save_on_exception`). When a fit fails, the other ranks' parts of the state
-- are lost: the optimizers can be used again only after loading a checkpoint.
local Offload = require "ltrain.strategies.sharded.Offload"
local OverlappedSteps = require "ltrain.dist.OverlappedSteps"
local ParallelStrategy = require "ltrain.strategies.ParallelStrategy"
local Reducer = require "ltrain.dist.Reducer"
local Replicas = require "ltrain.strategies.sharded.Replicas"
local Sharding = require "ltrain.strategies.sharded.Sharding"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local buckets = require "ltrain.dist.buckets"
local class = require "ltrain.core.class"
local ddp_options = require "ltrain.strategies.ddp_options"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"
local parts = require "ltrain.core.parts"
local rank_options = require "ltrain.strategies.rank_options"
local recomputed = require "ltrain.strategies.sharded.recomputed"
local sharding_options = require "ltrain.strategies.sharded.options"

local Sharded = ParallelStrategy:extend("Sharded")

local function check_stage(value) return sharding_options.check_stage(value, 1) end

local ROWS <const> = {
  stage = { type = "integer", default = 3, check = check_stage,
    doc = "what is divided: 1: the state of optimizers; 2: and gradients; 3: and parameters" },
  ddp_comm_hook = ddp_options.plain_hook,
}
for name, row in next, sharding_options.rows do ROWS[name] = row end

--- Rows of options for a subclass: its own and those of Sharded.
function Sharded.rows(own)
  local rows = {}
  for name, row in next, ROWS do rows[name] = row end
  for name, row in next, own or {} do rows[name] = row end
  return ParallelStrategy.rows(rows)
end

--- Its options.
Sharded.options = Sharded.rows()

--- Sharded{stage = 3, ...}
function Sharded:init(options) self:take_options(rank_options.check(self, options)) end

--- Takes checked options, and a list of notes to report.
function Sharded:take_options(o, notes)
  self.notes = notes
  rank_options.take(self, o)
  self:note_world()
  for name in next, ROWS do self[name] = o[name] end
  sharding_options.check("strategies." .. class.of(self).__name, self)
end

--- Refuses replicas that do not fit the number of ranks.
function Sharded:configure(ranks, o)
  ParallelStrategy.configure(self, ranks, o)
  if self.offload and ranks == 1 then sharding_options.note_alone(self) end
  sharding_options.check_replicas("strategies." .. class.of(self).__name, self.replicas, ranks)
end

-- The sharding of the run; nil: one rank divides nothing. All ranks call it.
local function begin(self)
  if self.world_size == 1 then
    self.sharding = nil
    return nil
  end
  if self.sharding and self.sharding:is_in_use() then return self.sharding end
  local who <const> = "strategies.Sharded"
  self.sharding = Sharding(sharding_options.take({ who = who, stage = self.stage,
    ranks = Replicas(self.replicas, { who = who,
      sends = self.ddp_comm_hook == "bf16" and "bf16" or nil }),
    home = Offload(self.offload, who), cap = buckets.bytes(self.bucket_cap_mb) }, self))
  return self.sharding
end

-- That of a run whose module is divided; nil: it is not.
local function active(self)
  local sharding = self.sharding
  return sharding and sharding.sharded and sharding or nil
end

function Sharded:setup(trainer)
  self.run = trainer
  begin(self)
  if trainer.state.fn == "fit" then self.fit = trainer end
  ParallelStrategy.setup(self, trainer)
end

local function share(parameter) broadcast_parameters.tensors { parameter } end

--- With stage 3 a parameter of the meta device is whole on a rank only while it gets its values.
function Sharded:materialize(module)
  if self.sharding then self.sharding:materialize(module, self.root_device, share) end
  ParallelStrategy.materialize(self, module)
end

function Sharded:share_module(module)
  local parted = self.sharding.parted
  broadcast_parameters.module(module, parted and parted.of)
end

-- Refuses callbacks that read on one rank what this divides.
local function check_callbacks(self, trainer, has_whole_gradients)
  local divided = { gradients = not has_whole_gradients, parameters = self.stage == 3 }
  for _, callback in ipairs(trainer.callbacks) do
    local reads = callback.reads_whole
    if reads and divided[reads] then
      errors.blame("strategies.Sharded: the callback %s reads whole %s, which stage %d divides: "
        .. "remove it, or write strategy = 'zero1'", class.of(callback).__name, reads, self.stage)
    end
  end
end

-- Shards the module.

-- What reduces whole gradients; with stage 1 while backward runs.
local function make_reducer(self, has_whole_gradients)
  self.reducer = has_whole_gradients
    and Reducer { bucket_cap_mb = self.bucket_cap_mb, comm_hook = self.ddp_comm_hook } or nil
  self.steps = self.stage == 1 and self.reducer:can_overlap() and OverlappedSteps(self.reducer)
    or nil
end

function Sharded:setup_module(module)
  module = ParallelStrategy.setup_module(self, module)
  local trains = module.trainer.state.fn == "fit"
  if trains and self.activation_checkpointing and not self.end_recomputing then
    self.end_recomputing = recomputed(module, self.activation_checkpointing,
      self.offload_activations)
  end
  if self.world_size == 1 or active(self) or not (trains or self.stage == 3) then return module end
  -- In "world" gradients, and their norms, are sums in the order of one rank: of whole ones. So are
  -- those that a hook of the script returns.
  local has_whole_gradients = self.stage == 1 or module.trainer.options.deterministic == "world"
    or type(self.ddp_comm_hook) == "function"
  check_callbacks(self, module.trainer, has_whole_gradients)
  if trains then make_reducer(self, has_whole_gradients) end
  self.sharding:divide(module, has_whole_gradients)
  return module
end

--- Shards the state that they have.
function Sharded:setup_optimizers(optimizers)
  if not active(self) then return optimizers end
  self.sharding:check(optimizers)
  self.sharding:add(optimizers)
  return optimizers
end

-- Steps.

--- See DDP.
function Sharded:before_last_backward(optimizer, weight)
  if self.steps then self.steps:expect(optimizer, weight) end
end

function Sharded:after_last_backward(optimizer, weight)
  return self.steps and self.steps:finish(optimizer, weight)
end

function Sharded:backward(loss, weight, ...)
  local _ <close> = self.steps and self.steps:begin()
  ParallelStrategy.backward(self, loss, weight, ...)
end

--- Makes the weighted mean of all ranks' gradients: with stage 1 the parameters have it, else their
--- shards alone.
function Sharded:reduce_gradients(optimizer, total, missing, weight)
  if self.steps and self.steps:take(optimizer, missing) then return end
  local sharding = active(self)
  if not sharding then
    ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  elseif sharding.has_whole_gradients then
    self.reducer:reduce(parameters_of(optimizer), total, missing, optimizer)
  else
    sharding:reduce_gradients(parameters_of(optimizer), total)
  end
end

--- Whether this rank has something of it.
function Sharded:has_accumulated_gradient(parameter)
  if not self.sharding then return parameter.grad ~= nil end
  return self.sharding:has_accumulated_gradient(parameter)
end

--- The norm over all shards.
function Sharded:grad_norm(optimizer, p)
  local sharding = active(self)
  if sharding and sharding:has_gradients_of(optimizer) then
    return sharding:grad_norm(optimizer, p, self.root_device)
  end
  return ParallelStrategy.grad_norm(self, optimizer, p)
end

-- State.

--- This rank's parts of the parameters, and the rest.
function Sharded:module_parts(module)
  if self.stage == 3 and active(self) then return self.sharding:module_parts(module) end
  return ParallelStrategy.module_parts(self, module)
end

--- Each rank loads its part. Before setup these are the shards of what is on the meta device; all
--- else is whole then.
function Sharded:load_module_state(module, state)
  local sharding = begin(self)
  if sharding and sharding:reads_shards(module) then
    self:materialize(module)
    if sharding:load_parted(module, state) then return end
  end
  local _ <close> = self:gather_parameters()
  ParallelStrategy.load_module_state(self, module, state)
end

--- This rank's part of the state.
function Sharded:optimizer_parts(optimizer, own_tensors)
  if active(self) then return self.sharding:optimizer_parts(optimizer, own_tensors) end
  return class.of(optimizer).state_dict(optimizer, own_tensors)
end

--- Each rank loads its part.
function Sharded:load_optimizer_state(optimizer, state)
  if active(self) then return self.sharding:load_optimizer(optimizer, state) end
  class.of(optimizer).load_state_dict(optimizer, parts.whole(state))
end

--- The f32 shards of parameters in 16 bits.
function Sharded:state_dict(_) return self.sharding and self.sharding:state_dict() or nil end

function Sharded:load_state_dict(state, _)
  if self.sharding then self.sharding:load_state_dict(state) end
end

-- `whole`: see Sharding.leave_module.
local function leave(self, whole)
  self.sharding:leave_module(whole)
  self.reducer, self.steps = nil, nil
end

--- Gathers the complete state on rank 0, for checkpoints saved after the fit, and frees it on the
--- other ranks; also for optimizers that the script has removed from the Trainer.
function Sharded:end_training(_)
  if not active(self) then return end
  local states, order = {}, self.sharding.order
  for i, optimizer in ipairs(order) do
    states[i] = self:optimizer_state(optimizer) or false
    optimizer.state = {}
  end
  self.sharding:leave_optimizers()
  for i, optimizer in ipairs(order) do
    if states[i] then optimizer:load_state_dict(states[i]) end
  end
  leave(self, true)
end

--- After a run that failed the other ranks' parts are gone.
function Sharded:teardown()
  local run, sharding = self.run and self.run.state, self.sharding
  if active(self) and run.fn ~= "fit" and run.status == "finished" then leave(self, true) end
  if self.fit and self.fit.state.status ~= "running" then -- else another Trainer's, within the fit
    if sharding then sharding:leave_optimizers(true) end
    self.fit = nil
  end
  if active(self) and run.status ~= "running" and run.status ~= "finished" then leave(self) end
  if self.end_recomputing and run.status ~= "running" then
    self.end_recomputing()
    self.end_recomputing = nil
  end
  if sharding then sharding.parted = nil end -- a run that failed before it was set up
  ParallelStrategy.teardown(self)
end

--- The state of optimizers is sharded, and the gradients that they step with; with stage 3 the
--- parameters too.
function Sharded:is_replicated(part)
  return not (self.sharding and self.sharding:divides(part))
end

return Sharded
