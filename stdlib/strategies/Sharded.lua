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
local ShardedModule = require "ltrain.strategies.sharded.ShardedModule"
local ShardedOptimizer = require "ltrain.strategies.sharded.ShardedOptimizer"
local Shards = require "ltrain.strategies.sharded.Shards"
local broadcast_parameters = require "ltrain.dist.broadcast_parameters"
local buckets = require "ltrain.dist.buckets"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collectives = require "ltrain.dist.collectives"
local ddp_options = require "ltrain.strategies.ddp_options"
local errors = require "ltrain.core.errors"
local gradients_of = require "ltrain.core.gradients_of"
local module_state = require "ltrain.nn.module_state"
local optimizer_guard = require "ltrain.strategies.sharded.optimizer_guard"
local parameters_of = require "ltrain.core.parameters_of"
local part_meta = require "ltrain.strategies.sharded.part_meta"
local parts = require "ltrain.core.parts"
local rank_options = require "ltrain.strategies.rank_options"
local recomputed = require "ltrain.strategies.sharded.recomputed"

local Sharded = ParallelStrategy:extend("Sharded")

local function check_stage(value)
  if value ~= 1 and value ~= 2 and value ~= 3 then
    return ("must be 1, 2 or 3: got %s"):format(value)
  end
end

local function check_replicas(value)
  if type(value) == "string" and value ~= "machines" or math.type(value) and value < 1 then
    return ("must be a number of groups of ranks, or 'machines': got %s"):format(value)
  end
end

--- What is said of a number in reshard_after_forward, which PyTorch takes.
local function check_reshard(value)
  if math.type(value) then
    return ("= %s: true or false; for shards within groups of ranks write replicas = N, the number "
      .. "of groups"):format(value)
  end
end

local function check_offload(value)
  local is_path = type(value) == "table" and type(value.path) == "string" and next(value) == "path"
    and next(value, "path") == nil
  if value ~= "cpu" and not is_path then
    return ("must be 'cpu', or {path = a folder}: got %s"):format(errors.show(value))
  end
end

local function check_units(value)
  if type(value) ~= "table" then return nil end
  for _, one in ipairs(value) do
    if type(one) ~= "table" or not rawget(one, "__name") or not one.__module then
      return ("must be a list of classes of modules: got %s"):format(errors.show(one))
    end
  end
end

local ROWS <const> = {
  stage = { type = "integer", default = 3, check = check_stage,
    doc = "what is divided: 1: the state of optimizers; 2: and gradients; 3: and parameters" },
  units = { type = "integer|function|table", default = 100000, check = check_units,
    doc = "modules that are gathered together: elements of ModuleLists and Sequentials with at "
      .. "least so many parameters, those of a list of classes, or those for which "
      .. "fn(module, name) is true" },
  reshard_after_forward = { type = "boolean|integer", default = true, check = check_reshard,
    doc = "stage 3: let the parameters of a unit go after its forward, and gather them again for "
      .. "backward; false: keep them in between" },
  replicas = { type = "integer|string", default = 1, check = check_replicas,
    doc = "groups of ranks of which each has all shards: a number, of consecutive ranks, or "
      .. "'machines': one a machine" },
  keep_below = { type = "integer", default = 0, min = 0,
    doc = "stage 3: parameters with fewer elements stay whole on every rank" },
  offload = { type = "string|table", check = check_offload,
    doc = "'cpu': what is divided stays on the host, where optimizers step; {path = a folder}: in "
      .. "files there" },
  ddp_comm_hook = ddp_options.plain_hook,
  activation_checkpointing = { type = "function|table", check = check_units,
    doc = "modules of which backward computes the activations again: a list of classes, or "
      .. "fn(module, name)" },
  offload_activations = { type = "boolean", default = false,
    doc = "with activation_checkpointing: what these modules are called with waits on the host" },
  accumulate = { type = "string", default = "shards", choices = { "shards", "whole" },
    doc = "with accumulate_grad_batches, stages 2 and 3: 'shards' reduces the gradients of each "
      .. "batch and adds up shards; 'whole' adds up whole gradients and reduces them once a step" },
}

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
  if self.offload_activations and not self.activation_checkpointing then
    errors.blame("strategies.%s: offload_activations is of the modules that "
      .. "activation_checkpointing names: write activation_checkpointing = {Block}",
      class.of(self).__name)
  end
  self.optimizers, self.order = {}, {} -- by optimizer, and the optimizers in order
end

local ALONE <const> = "offload has no effect: one rank divides nothing"

--- Refuses replicas that do not fit the number of ranks.
function Sharded:configure(ranks, o)
  ParallelStrategy.configure(self, ranks, o)
  if self.offload and ranks == 1 then
    self.notes = self.notes or {}
    if self.notes[#self.notes] ~= ALONE then table.insert(self.notes, ALONE) end
  end
  local replicas = self.replicas
  if ranks > 1 and math.type(replicas) and ranks % replicas ~= 0 then
    errors.blame("%s: replicas = %d must divide the number of ranks: got %d",
      "strategies." .. class.of(self).__name, replicas, ranks)
  end
end

-- Which ranks share, and where their shards are.
local function find_home(self)
  self.groups = Replicas(self.replicas, self.ddp_comm_hook == "bf16" and "bf16" or nil)
  self.home = Offload(self.offload)
end

function Sharded:setup(trainer)
  self.run = trainer
  if not self.sharded and not self.parted then find_home(self) end
  if trainer.state.fn == "fit" then self.fit = trainer end
  ParallelStrategy.setup(self, trainer)
end

--- With stage 3 a parameter of the meta device is whole on a rank only while it gets its values.
function Sharded:materialize(module)
  if self.stage == 3 and self.world_size > 1 and not self.sharded
    and (module.device == "meta" or module.configure_model) then
    local shards = self.parted or Shards(self.groups, self.home)
    self.parted = part_meta(module, self.root_device, self.keep_below, shards) or self.parted
  end
  ParallelStrategy.materialize(self, module)
end

function Sharded:share_module(module)
  broadcast_parameters.module(module, self.parted and self.parted.of)
end

-- Refuses callbacks that read on one rank what this divides.
local function check_callbacks(self, trainer)
  local divided = { gradients = not self.has_whole_gradients, parameters = self.stage == 3 }
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
local function make_reducer(self)
  self.reducer = self.has_whole_gradients
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
  if self.world_size == 1 or self.sharded or not (trains or self.stage == 3) then return module end
  -- In "world" gradients, and their norms, are sums in the order of one rank: of whole ones. So are
  -- those that a hook of the script returns.
  self.has_whole_gradients = self.stage == 1 or module.trainer.options.deterministic == "world"
    or type(self.ddp_comm_hook) == "function"
  check_callbacks(self, module.trainer)
  if trains then make_reducer(self) end
  self.sharded = ShardedModule(module, { shards = self.parted or Shards(self.groups, self.home),
    shards_parameters = self.stage == 3, units = self.units,
    reshard_after_forward = self.reshard_after_forward, keep_below = self.keep_below,
    shards_gradients = self.accumulate == "shards" and not self.has_whole_gradients })
  self.parted = nil
  collectives.before(function() self.sharded:settle() end)
  return module
end

--- Shards the state that they have.
function Sharded:setup_optimizers(optimizers)
  if not self.sharded then return optimizers end
  for _, optimizer in ipairs(optimizers) do
    if not self.optimizers[optimizer] then
      self.optimizers[optimizer] = ShardedOptimizer(optimizer, self.sharded.shards,
        buckets.bytes(self.bucket_cap_mb), self.has_whole_gradients)
      self.order[#self.order + 1] = optimizer
      optimizer_guard.guard(optimizer, "strategies.Sharded", function(_, saved)
        self:load_optimizer_state(optimizer, saved)
      end)
    end
  end
  return optimizers
end

-- Steps.

function Sharded:forward_scope()
  local outer = ParallelStrategy.forward_scope(self)
  return self.sharded and self.sharded:forward_scope(outer) or outer
end

--- See DDP.
function Sharded:before_last_backward(optimizer, weight)
  if self.steps then self.steps:expect(optimizer, weight) end
end

function Sharded:after_last_backward(optimizer, weight)
  return self.steps and self.steps:finish(optimizer, weight)
end

--- Gradients are reduced to their shards as backward passes.
function Sharded:backward(loss, weight, ...)
  local _ <close> = self.steps and self.steps:begin()
  if not self.sharded then return ParallelStrategy.backward(self, loss, weight, ...) end
  local more = table.pack(...)
  self.sharded:backward(function()
    ParallelStrategy.backward(self, loss, weight, table.unpack(more, 1, more.n))
  end)
end

--- The graph of these collectives has units too.
function Sharded:end_collectives()
  if not self.sharded or c.dist.unvisited() == 0 then
    return ParallelStrategy.end_collectives(self)
  end
  self.sharded:backward(function() ParallelStrategy.end_collectives(self) end)
end

--- Makes the weighted mean of all ranks' gradients: with stage 1 the parameters have it, else their
--- shards alone.
function Sharded:reduce_gradients(optimizer, total, missing, weight)
  if self.steps and self.steps:take(optimizer, missing) then return end
  if not self.sharded then
    ParallelStrategy.reduce_gradients(self, optimizer, total, missing, weight)
  elseif self.has_whole_gradients then
    self.reducer:reduce(parameters_of(optimizer), total, missing, optimizer)
  else
    self.sharded:reduce_gradients(parameters_of(optimizer), total,
      buckets.bytes(self.bucket_cap_mb))
  end
end

--- This rank's slice of what was reduced, at its place in the whole.
function Sharded:accumulated_gradient(parameter)
  if not self.sharded then return parameter.grad end
  return self.sharded:accumulated_gradient(parameter)
end

--- Whether this rank has something of it.
function Sharded:has_accumulated_gradient(parameter)
  return parameter.grad ~= nil
    or self.sharded and self.sharded:has_accumulated_gradient(parameter) or false
end

--- This rank's shards, where these alone have gradients.
function Sharded:param_groups(optimizer)
  local sharded = not self.has_whole_gradients and self.optimizers[optimizer]
  return sharded and sharded:groups() or optimizer.param_groups
end

--- The norm over all shards, those of replica 0. Partial norms are f64, so that rounding to the
--- gradients' dtype comes last, as on one rank.
function Sharded:grad_norm(optimizer, p)
  if self.has_whole_gradients or not self.optimizers[optimizer] then
    return ParallelStrategy.grad_norm(self, optimizer, p)
  end
  local gradients = self.groups.is_first and gradients_of(self:param_groups(optimizer)) or {}
  local is_f64 = self.optimizers[optimizer]:steps "f64"
  table.insert(gradients, c.zeros({ 1 }, { dtype = "f64",
    device = self.home.device or self.root_device }))
  local norm = c.grads_norm({ collectives.all_gather(c.grads_norm(gradients, p)) }, p)
  return is_f64 and norm or norm:to "f32"
end

--- Steps this rank's slices, and gathers the new parameters where they are whole.
function Sharded:optimizer_step(optimizer, update)
  local sharded = self.optimizers[optimizer]
  if not sharded then return update() end
  if self.home.device then optimizer:place_checks(self.home.device) end
  sharded:step(update)
  self.sharded:renew()
end

--- Gathers all units.
function Sharded:gather_parameters()
  return self.sharded and self.sharded:gather(true) or nil
end

-- State.

--- This rank's parts of the parameters, and the rest.
function Sharded:module_parts(module)
  if not self.sharded or self.stage < 3 then return ParallelStrategy.module_parts(self, module) end
  return self.sharded:module_parts()
end

--- Each rank loads its part. Before setup these are the shards of what is on the meta device; all
--- else is whole then.
function Sharded:load_module_state(module, state)
  local parts_meta = self.stage == 3 and self.world_size > 1 and not self.sharded
    and module:_takes_unread()
  if parts_meta then
    find_home(self)
    self:materialize(module)
  end
  local shards = parts_meta and self.parted
  if shards then
    module_state.load_by(module, state, function(...) shards:copy_into(...) end)
    return
  end
  local _ <close> = self:gather_parameters()
  ParallelStrategy.load_module_state(self, module, state)
end

--- This rank's part of the state.
function Sharded:optimizer_parts(optimizer)
  local sharded, state_dict = self.optimizers[optimizer], class.of(optimizer).state_dict
  return sharded and sharded:parts(state_dict) or state_dict(optimizer)
end

--- Each rank loads its part.
function Sharded:load_optimizer_state(optimizer, state)
  local sharded, load = self.optimizers[optimizer], class.of(optimizer).load_state_dict
  if sharded then return sharded:load(load, state) end
  load(optimizer, parts.whole(state))
end

--- The f32 shards of parameters in 16 bits.
function Sharded:state_dict(_)
  local wide = self.sharded and self.sharded:wide_parts()
  return wide and { shards = wide } or nil
end

function Sharded:load_state_dict(state, _)
  if self.sharded and state.shards then self.sharded:load_wide_parts(state.shards) end
end

-- Nothing waits for other ranks any more. `whole`: all ranks come here, and make the module whole.
local function leave(self, whole)
  if whole then self.sharded:join() else self.sharded:lose() end
  collectives.before(nil)
  self.sharded, self.reducer, self.steps = nil, nil, nil
end

--- Gathers the complete state on rank 0, for checkpoints saved after the fit, and frees it on the
--- other ranks; also for optimizers that the script has removed from the Trainer.
function Sharded:end_training(_)
  if not self.sharded then return end
  for _, optimizer in ipairs(self.order) do
    local whole = self:optimizer_state(optimizer)
    optimizer.state = {}
    optimizer_guard.unguard(optimizer)
    if whole then optimizer:load_state_dict(whole) end
  end
  self.optimizers, self.order = {}, {}
  leave(self, true)
end

--- After a run that failed the other ranks' parts are gone.
function Sharded:teardown()
  local run = self.run and self.run.state
  if self.sharded and run.fn ~= "fit" and run.status == "finished" then leave(self, true) end
  if self.fit and self.fit.state.status ~= "running" then -- else another Trainer's, within the fit
    for _, optimizer in ipairs(self.order) do
      optimizer_guard.unguard(optimizer)
      if next(optimizer.state) ~= nil then
        optimizer_guard.lose(optimizer, "strategies.Sharded")
      end
    end
    self.fit, self.optimizers, self.order = nil, {}, {}
  end
  if self.sharded and run.status ~= "running" and run.status ~= "finished" then leave(self) end
  if self.end_recomputing and run.status ~= "running" then
    self.end_recomputing()
    self.end_recomputing = nil
  end
  self.parted = nil -- a run that failed before it was set up
  ParallelStrategy.teardown(self)
end

--- The state of optimizers is sharded, and the gradients that they step with; with stage 3 the
--- parameters too.
function Sharded:is_replicated(part)
  if not self.sharded or part == "buffer" then return true end
  return part == "parameter" and self.stage < 3 or part == "gradient" and self.has_whole_gradients
end

return Sharded
