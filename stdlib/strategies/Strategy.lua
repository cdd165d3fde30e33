-- stdlib/strategies/Strategy.lua: how the processes of a run work together. The base class is for
-- one process; subclasses override methods for several.
--
-- The loop calls its methods in this order: configure, launch, setup, setup_module,
-- setup_optimizers; for each batch forward_scope, backward_scope, backward and end_collectives; for
-- each step before_last_backward, after_last_backward, reduce_gradients, grad_norm and
-- optimizer_step; end_training, teardown. Methods that are called on all ranks may use collectives:
-- every rank calls them at the same point of the run, also a rank that had no samples.
--
-- A strategy has parts, which a script may replace: the device (accelerator), the dtypes
-- (precision), how checkpoints are saved (checkpoint_io), and how the ranks were started
-- (cluster_environment; nil: detected).

local Accelerator = require "ltrain.core.Accelerator"
local CheckpointIO = require "ltrain.files.CheckpointIO"
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local Precision = require "ltrain.core.Precision"
local as_instance = require "ltrain.core.as_instance"
local Optimizer = require "ltrain.optim.Optimizer"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local gradients_of = require "ltrain.core.gradients_of"
local parts = require "ltrain.core.parts"
local precision = require "ltrain.strategies.precision"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local Strategy = class.extend(nil, "Strategy")

Strategy.extend = class.extend

-- The ranks of this process, as of lt.dist.
Strategy.world_size = 1
Strategy.global_rank = 0
Strategy.local_rank = 0
Strategy.node_rank = 0
Strategy.is_global_zero = true
--- The device that modules and batches are moved to.
Strategy.root_device = "cpu"
--- Whether steps run once for each of the list `devices` of this process, with a part of the batch.
Strategy.splits_batches = false
--- Whether `devices` are all of this process, and no ranks.
Strategy.has_all_devices = false
--- How many devices the root device stands for, of a kind that has such; 0: all there are.
Strategy.partitions = 1
--- The module of the current run.
Strategy.module = nil

Strategy.accelerator = Accelerator()
Strategy.precision = Precision()
Strategy.checkpoint_io = CheckpointIO()
Strategy.cluster_environment = nil

-- How each part is created from what a script passes.
local PARTS <const> = {
  accelerator = Accelerator.adopt,
  checkpoint_io = CheckpointIO.adopt,
  cluster_environment = function(value, where)
    return as_instance(value, ClusterEnvironment, where, { "world_size", "global_rank" })
  end,
  precision = function(value, where)
    if type(value) == "table" then return Precision.adopt(value, where) end
    return precision.plugin(value, where)
  end,
}

local PART_ROWS <const> = {
  accelerator = { type = "object|table", doc = "device that ranks compute on; by default the CPU" },
  checkpoint_io = { type = "object|table",
    doc = "how checkpoints are saved, loaded and removed; by default as safetensors files" },
  cluster_environment = { type = "object|table",
    doc = "how the ranks were started; by default detected" },
  precision = { type = "object|table|string|integer",
    doc = "dtypes of the computation; by default the Trainer's precision" },
}

--- Returns rows of options for config.check: those of a subclass and those of the parts.
function Strategy.rows(own)
  local rows = {}
  for name, row in next, PART_ROWS do rows[name] = row end
  for name, row in next, own or {} do rows[name] = row end
  return rows
end

--- Strategy{checkpoint_io = ...}
function Strategy:init(options)
  self:use_parts(config.check(options, Strategy.rows(), getmetatable(self).__name))
end

--- Sets the parts that are given in the checked options.
function Strategy:use_parts(o)
  for name in next, PART_ROWS do
    if o[name] ~= nil then self[name] = o[name] end
  end
end

--- Creates the parts, which a subclass may have set as plain tables; the Trainer's options
--- (`given`) replace the default ones. Specifying a part twice is an error.
function Strategy:combine(given)
  local own = rawget(self, "_own_parts") or {} -- a strategy may serve several Trainers
  self._own_parts = own
  for name, make in tree.pairs(PARTS) do
    local where = ("strategies.%s: %s"):format(getmetatable(self).__name, name)
    if own[name] == nil then own[name] = self[name] ~= Strategy[name] and self[name] or false end
    if own[name] and given[name] ~= nil then
      errors.blame("%s: the Trainer's options give one too: give one of them", where)
    end
    local value = own[name] or given[name] or Strategy[name]
    self[name] = value and make(value, where)
  end
end

--- Creates a part from the value passed by a script; `where` is the prefix of error messages.
function Strategy.make_part(name, value, where)
  return PARTS[name](value, ("%s: %s"):format(where, name))
end

--- Takes the number of ranks and the Trainer's options `o`.
function Strategy:configure(ranks, o)
  if ranks > 1 then
    errors.blame("Trainer: strategy = %s is one rank: got %d (devices = %s)",
      errors.show(o.strategy), ranks, errors.show(o.devices))
  end
  self.root_device = self.accelerator:device(self.local_rank)
end

--- Runs body() on every rank of the run `what` ("fit", ...), and returns its result. `folder`:
--- where failure reports are written, nil if there is none yet.
function Strategy:launch(what, body, folder) return body() end

--- Called at the start of a run, to create processes and connections.
function Strategy:setup_environment(trainer) end

--- Runs prepare(), which writes files that every rank reads: on one rank of each machine, or with
--- `once` on rank 0 only.
function Strategy:prepare_data(prepare, once) prepare() end

--- Called on all ranks when the module exists: moves it to its device. A subclass that overrides it
--- must call its parent's: `Mine.super.setup(self, trainer)`.
function Strategy:setup(trainer)
  local module = trainer.module
  self._is_set_up = true
  self.accelerator:setup(trainer)
  if self.root_device ~= "cpu" then -- what "cuda" alone means in hooks of this rank
    c.runtime.current_device(self.root_device, self.root_device)
    self.partitions = c.runtime.partition(self.root_device, self.partitions, self.local_rank)
  end
  self:materialize(module)
  -- Moving creates new parameters, so only if they are on another device.
  if module.device ~= self.root_device then module:to(self.root_device) end
end

--- Gives parameters and buffers of the meta device their values; besides others, such are made in
--- configure_model.
function Strategy:materialize(module)
  if module.device ~= "meta" and not module.configure_model then return end
  for _, item in ipairs((walk.tensors(module))) do
    if item.value.is_meta then
      module:materialize(self.root_device)
      return
    end
  end
end

--- Called by the Trainer: calls `setup`, and checks that it called its parent's.
function Strategy:start(trainer)
  self._is_set_up, self.module = false, trainer.module
  self:setup(trainer)
  if not self._is_set_up then
    local name = getmetatable(self).__name
    errors.blame("strategies.%s: setup does not call its parent's, which moves the module "
      .. "to its device: write %s.super.setup(self, trainer) in it", name, name)
  end
end

local BESIDE <const> = { non_blocking = true }

--- Returns the batch with its tensors moved to the device, asynchronously.
function Strategy:batch_to_device(batch)
  local device = self.root_device
  return tree.map(batch, function(leaf)
    return c.is_tensor(leaf) and c.runtime.check_dtype(leaf:to(device, BESIDE)) or leaf
  end)
end

--- Returns the batch on its device as the step gets it, after on_after_batch_transfer. A strategy
--- whose ranks work on the same samples together may return this rank's part.
function Strategy:divide_batch(batch) return batch end

--- Called on all ranks after configure_model and before the optimizers are created; returns the
--- module to train, which it may wrap or change.
function Strategy:setup_module(module) return module end

--- Called on all ranks after configure_optimizers, before the optimizers' state is loaded, and for
--- optimizers that a script adds to trainer.optimizers later; returns the list of optimizers to
--- use, which it may wrap or change.
function Strategy:setup_optimizers(optimizers) return optimizers end

-- Steps.

--- Returns a value to be closed after each step of the module (training_step, ...), such as
--- lt.autocast's, or nil. The base class returns the precision's.
function Strategy:forward_scope() return self.precision:forward_context() end

--- The same for backward.
function Strategy:backward_scope() end

-- Methods that a strategy may have:
--
-- step_numbers(optimizer, weight, is_open): numbers of this rank, as many on all, which are added
-- up over the ranks in the message of a step (trainer/ranks/consensus.lua); nil: none. `weight`:
-- what its samples weigh; `is_open`: the script may change the gradients before the step.
-- take_step_numbers(optimizer, sums): called with the sums.
--
-- And two of a strategy of which each rank runs a part of each step:
--
-- run_step(fn, module, ...): runs fn(module, ...), a step of the module, or this rank's part of it,
-- and returns what that returns; nothing where the step goes on elsewhere.
--
-- run_microbatches(work): called for a training batch in place of training_step and backward;
-- `work`: see trainer/steps/microbatches.lua. The strategy's field `microbatches` says into how
-- many parts a batch is cut.

--- Returns whether what the running step logs counts on this rank.
function Strategy:logs_here() return true end

--- Accumulates the gradients of `loss` times `weight`, this rank's share of a batch. Further
--- arguments are those of manual_backward.
function Strategy:backward(loss, weight, ...)
  if weight ~= 1.0 then loss = loss * weight end
  self.module:backward(loss, ...)
end

--- Called in automatic optimization by ranks that have a loss, before the last backward of a step:
--- gradients that it completes may be reduced while it runs. `weight`: the sum of this rank's
--- weights. Not called where a script may use the gradients before the step.
function Strategy:before_last_backward(optimizer, weight) end

--- Called in automatic optimization on all ranks, also those that have no loss, after the last
--- backward of a step and before reduce_gradients. A strategy that has reduced the gradients by
--- then returns how many of this rank's were nil.
function Strategy:after_last_backward(optimizer, weight) end

--- Called on all ranks once per step of an optimizer, before hooks and clipping: replaces the
--- gradients accumulated since the last step by those of the step. `total`: the sum of the weights
--- over all ranks, above 0; `missing`: the number of gradients that are nil, over all ranks;
--- `weight`: the sum of this rank's weights, 0 if it had no samples.
function Strategy:reduce_gradients(optimizer, total, missing, weight)
  if total == 1.0 then return end
  local _ <close> = c.no_grad()
  for _, group in ipairs(optimizer.param_groups) do
    for _, parameter in ipairs(group.params) do
      local grad = parameter.grad
      if grad then grad:mul_(1.0 / total) end
    end
  end
end

--- Called on all ranks at the end of a batch, with or without a loss: runs backward of the
--- collectives in its graph that none has visited, for which other ranks wait.
function Strategy:end_collectives()
  c.dist.visit_rest()
  c.dist.end_step()
end

--- Returns whether reduce_gradients combines the gradients of all ranks for the next step. If not,
--- each rank steps with its own, and accumulated gradients are saved and resumed for each rank
--- instead of as a sum.
function Strategy:shares_gradients() return true end

--- Called on all ranks between the batches of an accumulation window: returns what this rank has of
--- the parameter's gradient, of the whole shape, or nil; the sum over the ranks is saved.
function Strategy:accumulated_gradient(parameter) return parameter.grad end

--- Returns whether this rank takes what was saved of the parameter's gradient. `is_first`: whether
--- it is of the first replica (dist/data_ranks.lua): of its ranks one does.
function Strategy:takes_gradient(parameter, is_first) return is_first end

--- Returns whether accumulated_gradient returns a gradient, for a strategy that knows before it has
--- made one.
function Strategy:has_accumulated_gradient(parameter)
  return self:accumulated_gradient(parameter) ~= nil
end

--- Returns the parameters that this rank updates, after reduce_gradients: a list of {params =,
--- names =} like optimizer.param_groups, whose tensors have the gradients. These are the gradients
--- that are clipped, and checked for values that are not finite.
function Strategy:param_groups(optimizer) return optimizer.param_groups end

--- Called on all ranks: returns the total norm of the gradients that the optimizer steps with, over
--- all ranks; a tensor without dims, finite on all ranks or on none. p: 2, or math.huge for the
--- maximum. Used by clipping and by the check for gradients that are not finite.
function Strategy:grad_norm(optimizer, p)
  return c.grads_norm(gradients_of(self:param_groups(optimizer)), p)
end

--- Called on all ranks for each step that is taken (not skipped): calls update(), which updates the
--- parameters of optimizer.param_groups with their gradients.
function Strategy:optimizer_step(optimizer, update) update() end

--- Called on all ranks: returns a value to be closed after validation or testing, or nil.
function Strategy:evaluation_scope(module) end

--- Called on all ranks when training has ended without an error: afterwards rank 0 alone must be
--- able to save checkpoints.
function Strategy:end_training(optimizers) end

--- Returns a value to be closed, until when all parameters of the module are whole on this rank, or
--- nil where they always are. For code outside of forward, which may also change them: all ranks
--- must call it, and change them alike.
function Strategy:gather_parameters() end

-- Checkpoints.

--- Called on all ranks: returns what this rank has of the module's state: tensors and other values
--- by name. Of a tensor that the ranks share it returns a part,
--- `parts.new{shape = of the whole, from = first element, tensor = the elements}`
--- (core/parts.lua); whole tensors are the same on all ranks that return them.
function Strategy:module_parts(module) return module:state_dict() end

--- The same of an optimizer's state: the tree that its state_dict returns, with parts in the place
--- of tensors. A rank that has no element of a tensor may leave it out. `own_tensors`: of
--- state_dict.
function Strategy:optimizer_parts(optimizer, own_tensors)
  return optimizer:state_dict(own_tensors)
end

--- Called on all ranks: returns the module's state, complete on rank 0, nil on the others.
function Strategy:module_state(module) return self:module_parts(module) end

--- The same for an optimizer.
function Strategy:optimizer_state(optimizer, own_tensors)
  return self:optimizer_parts(optimizer, own_tensors)
end

--- Called on all ranks with the complete state, of which each loads its part. A tensor in it may be
--- one of a file that has not been read: `parts.read(tensor, from, n)` returns `n` of its elements,
--- `parts.whole(state)` all.
function Strategy:load_module_state(module, state)
  Strategy.materialize(self, module) -- weights are loaded before setup
  module:load_state_dict(module:_takes_unread() and state or parts.whole(state))
end

--- The same for an optimizer, after setup_optimizers.
function Strategy:load_optimizer_state(optimizer, state)
  local takes_unread = optimizer.load_state_dict == Optimizer.load_state_dict
  optimizer:load_state_dict(takes_unread and state or parts.whole(state))
end

--- Called on all ranks: returns the strategy's own state for a checkpoint, a tree as of
--- optimizer_parts; nil if it has none. `optimizers`: those of the Trainer, in order.
function Strategy:state_dict(optimizers) end

--- Restores it after the optimizers' state, if a strategy of the same class has saved one.
function Strategy:load_state_dict(state, optimizers) end

--- Returns whether all ranks currently have the same values of a part: "parameter", "buffer",
--- "gradient" (between reduce_gradients and the step), "optimizer" (its state) or "strategy" (what
--- state_dict returns). If so, replica checks compare it, and one rank can save it.
function Strategy:is_replicated(part) return true end

--- Returns whether the ranks over which gradients are summed (data_ranks.group) have the same
--- values of a part: replica checks compare them.
function Strategy:has_copies(part) return self:is_replicated(part) end

-- Ranks.

--- Returns a list of numbers summed over all ranks.
function Strategy:add(numbers) return numbers end

--- Broadcasts rank 0's buffers to all ranks.
function Strategy:sync_buffers(module) end

--- Called at the end of a run, also after an error.
function Strategy:teardown() self.accelerator:teardown() end

--- Returns a number or tensor reduced over all processes: "mean", "sum", "min" or "max".
function Strategy:reduce(value, how) return value end

--- Returns the value of process `source`.
function Strategy:broadcast(value, source) return value end

--- Returns the list of the values of all processes, in order of rank.
function Strategy:all_gather(value) return { value } end

--- Waits for all processes. `name` is used in error messages.
function Strategy:barrier(name) end

--- Returns whether the condition holds on all processes, or with all = false on any.
function Strategy:reduce_boolean(condition, all) return condition end

return Strategy
