-- stdlib/strategies/Strategy.lua: how the processes of a run work together. The base is one
-- process, to which every question has the simple answer; subclasses override what is different.
--
-- The loop calls its methods in the order of a run: configure, launch, setup, setup_module,
-- setup_optimizers; for each batch forward_scope, backward_scope and backward; for each step
-- reduce_gradients, grad_norm and optimizer_step; end_training, teardown. Those that all ranks call
-- may use collectives: every rank comes there at the same point, also one that had no sample.
--
-- A strategy is made of parts, which a script may replace: what it computes on (accelerator), in
-- which numbers (precision), how checkpoints reach the disk (checkpoint_io), and who started its
-- ranks (cluster_environment; nil: found out).

local Accelerator = require "ltrain.core.Accelerator"
local CheckpointIO = require "ltrain.files.CheckpointIO"
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local Precision = require "ltrain.core.Precision"
local adopt = require "ltrain.core.adopt"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local precision = require "ltrain.strategies.precision"
local tree = require "ltrain.core.tree"

local Strategy = class.extend(nil, "Strategy")

Strategy.extend = class.extend

-- Who this process is.
Strategy.world_size = 1
Strategy.global_rank = 0
Strategy.local_rank = 0
Strategy.node_rank = 0
Strategy.is_global_zero = true
--- The device that modules and batches go to.
Strategy.root_device = "cpu"
--- The module of the run that is going on.
Strategy.module = nil

Strategy.accelerator = Accelerator()
Strategy.precision = Precision()
Strategy.checkpoint_io = CheckpointIO()
Strategy.cluster_environment = nil

-- How each part is made of what a script gives.
local PARTS <const> = {
  accelerator = Accelerator.adopt,
  checkpoint_io = CheckpointIO.adopt,
  cluster_environment = function(value, where)
    return adopt(value, ClusterEnvironment, where, { "world_size", "global_rank" })
  end,
  precision = function(value, where)
    if type(value) == "table" then return Precision.adopt(value, where) end
    return precision.plugin(value, where)
  end,
}

local PART_ROWS <const> = {
  accelerator = { type = "object|table", doc = "what ranks compute on; by default the CPU" },
  checkpoint_io = { type = "object|table",
    doc = "how checkpoints are saved, loaded and removed; by default as safetensors files" },
  cluster_environment = { type = "object|table",
    doc = "who started the ranks; by default detected" },
  precision = { type = "object|table|string|integer",
    doc = "dtypes of the computation; by default the Trainer's precision" },
}

--- Rows of options for config.check: a subclass's own and those of the parts.
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

--- Takes the parts that are among checked options.
function Strategy:use_parts(o)
  for name in next, PART_ROWS do
    if o[name] ~= nil then self[name] = o[name] end
  end
end

--- Makes objects of the parts, which a subclass may have set as plain tables, and puts those of a
--- Trainer's options (`given`) in the place of the usual ones. A part cannot be given twice.
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

--- A part out of what a script gives for it; `where` begins the text of errors.
function Strategy.make_part(name, value, where)
  return PARTS[name](value, ("%s: %s"):format(where, name))
end

--- How many ranks the Trainer's options `o` mean.
function Strategy:configure(ranks, o)
  if ranks > 1 then
    errors.blame("Trainer: strategy = %s is one rank: got %d (devices = %s)",
      errors.show(o.strategy), ranks, errors.show(o.devices))
  end
  self.root_device = self.accelerator:device(self.local_rank)
end

--- Runs body() in every rank of the run `what` ("fit", ...), and returns what it returns. `folder`:
--- where reports of failures go, nil when there is none yet.
function Strategy:launch(what, body, folder) return body() end

--- Before anything of a run: processes, connections.
function Strategy:setup_environment(trainer) end

--- Runs prepare(), which makes files that every rank reads: on one rank a machine, or on rank 0
--- alone (`once`).
function Strategy:prepare_data(prepare, once) prepare() end

--- All ranks call it. The module is there: put it where it runs. A subclass that overrides it calls
--- this one: `Mine.super.setup(self, trainer)`.
function Strategy:setup(trainer)
  local module = trainer.module
  self._is_set_up = true
  self.accelerator:setup(trainer)
  -- Moving makes new parameters: only when they are elsewhere.
  if module.device ~= self.root_device then module:to(self.root_device) end
end

--- What the Trainer calls: `setup`, and a look whether a subclass left out what is above it.
function Strategy:start(trainer)
  self._is_set_up, self.module = false, trainer.module
  self:setup(trainer)
  if not self._is_set_up then
    local name = getmetatable(self).__name
    errors.blame("strategies.%s: setup does not call its parent's, which puts the module in "
      .. "place: write %s.super.setup(self, trainer) in it", name, name)
  end
end

--- The batch with its tensors on the device.
function Strategy:batch_to_device(batch)
  local device = self.root_device
  return tree.map(batch, function(leaf)
    return c.is_tensor(leaf) and leaf:to(device) or leaf
  end)
end

--- The module that is trained, as the strategy wants it: called on all ranks after configure_model
--- and before optimizers are made. What it returns is trained.
function Strategy:setup_module(module) return module end

--- The list of optimizers, as the strategy wants them: called on all ranks after
--- configure_optimizers, before their state is loaded; also for those that a script puts into
--- trainer.optimizers later.
function Strategy:setup_optimizers(optimizers) return optimizers end

-- A step.

--- What is open around each step of the module (training_step, ...), and closed after it; nil for
--- nothing. The base opens what the precision does.
function Strategy:forward_scope() return self.precision:forward_context() end

--- The same around backward.
function Strategy:backward_scope() end

--- Adds the gradients of `loss` times `weight`, which is this rank's share of a batch. What else
--- manual_backward was given follows.
function Strategy:backward(loss, weight, ...)
  if weight ~= 1.0 then loss = loss * weight end
  self.module:backward(loss, ...)
end

--- All ranks call it, once a step of an optimizer, before hooks and clipping: makes what was added
--- since the last time the gradients to step with. `total`: the sum of the weights over all ranks,
--- above 0; `missing`: how many gradients are not there, of all ranks together; `weight`: the sum
--- of this rank's weights, 0 where it had no sample.
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

--- What this rank steps, after reduce_gradients: a list of {params =, names =} as
--- optimizer.param_groups, whose tensors have the gradients. Clipping scales these, and where
--- gradients are not finite these are named.
function Strategy:param_groups(optimizer) return optimizer.param_groups end

--- All ranks call it: the norm of all gradients that the optimizer steps with, of all ranks
--- together; a tensor of no dims, finite on all ranks or on none. p: 2, or math.huge for the
--- largest. Clipping and the check for gradients that are not finite use it.
function Strategy:grad_norm(optimizer, p)
  local list, n = {}, 0
  for _, group in ipairs(self:param_groups(optimizer)) do
    for _, parameter in ipairs(group.params) do
      local grad = parameter.grad
      if grad then
        n = n + 1
        list[n] = grad
      end
    end
  end
  return c.grads_norm(list, p)
end

--- All ranks call it, once a step that is taken: calls update(), which changes the parameters of
--- optimizer.param_groups by their gradients.
function Strategy:optimizer_step(optimizer, update) update() end

--- What is open around validation and testing, on all ranks; nil for nothing.
function Strategy:evaluation_scope(module) end

--- All ranks call it where training has ended well: from here on rank 0 alone has all that a file
--- may hold.
function Strategy:end_training(optimizers) end

-- Files.

--- What a checkpoint holds of the module, tensors by name. All ranks call it; rank 0 gets the
--- whole, the others nil.
function Strategy:module_state(module) return module:state_dict() end

--- What a checkpoint holds of an optimizer. All ranks call it; rank 0 gets the whole, the others
--- nil.
function Strategy:optimizer_state(optimizer) return optimizer:state_dict() end

--- All ranks call it with the whole: each takes its part.
function Strategy:load_module_state(module, state) module:load_state_dict(state) end

--- The same for an optimizer, after setup_optimizers.
function Strategy:load_optimizer_state(optimizer, state) optimizer:load_state_dict(state) end

--- Whether all ranks hold the same of a part now: "parameter", "buffer", "gradient" (between
--- reduce_gradients and the step) or "optimizer" (its state). Checks of replicas compare what they
--- do; a rank alone can save it.
function Strategy:is_replicated(part) return true end

-- Ranks.

--- Adds each of a list of numbers over all ranks: a list.
function Strategy:add(numbers) return numbers end

--- Makes the buffers of all ranks those of rank 0.
function Strategy:sync_buffers(module) end

--- The run is over, also after an error.
function Strategy:teardown() self.accelerator:teardown() end

--- Combine a number or tensor over all processes: "mean", "sum", "min" or "max".
function Strategy:reduce(value, how) return value end

--- The value that process `source` has.
function Strategy:broadcast(value, source) return value end

--- The list of what each process has, in order of rank.
function Strategy:all_gather(value) return { value } end

--- Wait for all processes. `name` stands in errors.
function Strategy:barrier(name) end

--- Whether the condition holds on all processes (or on any, with all = false).
function Strategy:reduce_boolean(condition, all) return condition end

return Strategy
