--- stdlib/apps/plan/rehearsal.lua: two steps of a fit as one of N ranks would make them, on the
--- meta device, which counts bytes and has none.
--
-- The loop, the strategy and the optimizer are the real ones: what is measured is what they
-- allocate. Where a script reads a value of a tensor, which a meta tensor does not have, the steps
-- are made on the CPU.
local Callback = require "ltrain.core.Callback"
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"
local divided_modules = require "ltrain.parallel.divided_modules"
local dry_run = require "ltrain.apps.check.dry_run"
local loaders = require "ltrain.trainer.data.loaders"
local placement = require "ltrain.trainer.setup.placement"
local run = require "ltrain.trainer.run"
local stand_in_ranks = require "ltrain.apps.plan.stand_in_ranks"
local tensor_bytes = require "ltrain.apps.plan.tensor_bytes"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local rehearsal = {}

local STEPS <const> = 2 -- of the optimizer; the first one makes its state
local NO_DATA <const> = "a meta tensor has no data"

local function live(device) return c.runtime.memory(device).live_bytes end

-- Bytes of the tensors of a module, each once, and of its parameters alone.
local function module_bytes(module)
  local all, own, seen = 0, 0, {}
  for _, item in ipairs((walk.tensors(module))) do
    if not seen[item.value] then
      seen[item.value] = true
      all = all + tensor_bytes.of(item.value)
      if not item.buffer then own = own + tensor_bytes.of(item.value) end
    end
  end
  return all, own
end

-- What a rank has of the parameters and buffers between steps.
local function kept_bytes(state)
  local all = module_bytes(state.module)
  local sharding = state.strategy.sharding
  local sharded = sharding and sharding.sharded
  if not sharded or not sharded.shards_parameters then return all end
  for _, shard in next, sharded.shards.of do
    if not shard.is_kept then
      all = all - tensor_bytes.of(shard.parameter) + tensor_bytes.of(shard.tensor)
    end
  end
  return all
end

local function gradient_bytes(state)
  local bytes = 0
  for _, optimizer in ipairs(state.optimizers) do
    for _, group in ipairs(state.strategy:param_groups(optimizer)) do
      for _, parameter in ipairs(group.params) do
        local grad = parameter.grad
        if grad then bytes = bytes + tensor_bytes.of(grad) end
      end
    end
  end
  return bytes
end

local function state_bytes(state)
  local bytes = 0
  for _, optimizer in ipairs(state.optimizers) do
    for _, slots in next, optimizer.state or {} do
      tree.each(slots, function(value)
        if c.is_tensor(value) then bytes = bytes + tensor_bytes.of(value) end
      end)
    end
  end
  return bytes
end

-- The first half of a batch; of one that cannot be cut, all of it.
local function half(batch)
  local n = batch_samples.size(batch)
  if not n or n < 2 then return batch end
  local positions = {}
  for i = 1, n // 2 do positions[i] = i end
  return batch_samples.rows(batch, positions, n)
end

local function batch_bytes(batch)
  local bytes = 0
  for _, leaf in ipairs(batch_samples.leaves(batch)) do
    bytes = bytes + tensor_bytes.of(leaf.value)
  end
  return bytes
end

-- training_step with new tensors on the device, and what is alive after it; to be closed.
local function watch_step(module, o, found)
  local own, step = rawget(module, "training_step"), module.training_step
  rawset(module, "training_step", function(self, batch, ...)
    if o.half_batch then
      found.cut = batch_bytes(batch) -- the other half would not be there
      batch = half(batch)
    end
    found.samples, found.data_ranks = batch_samples.size(batch), data_ranks.size()
    local before = live(o.device)
    local _ <close> = c.device(o.device)
    local loss = step(self, batch, ...)
    found.activations = math.max(found.activations, live(o.device) - before)
    return loss
  end)
  return setmetatable({}, { __close = function() rawset(module, "training_step", own) end })
end

-- Batches without end, the last one again and again: an epoch that ended would read what was
-- logged, and validate. To be closed.
local function repeat_batches(o)
  local own, last, index = loaders.next, nil, -1
  function loaders.next(pass)
    local batch, at, is_last = own(pass)
    if batch == nil and o.device == "meta" then batch, is_last = last, false end
    if batch == nil then return nil end
    index = at or index + 1
    if o.device == "meta" then last, is_last = batch, false end
    return batch, index, is_last
  end
  return setmetatable({}, { __close = function() loaders.next = own end })
end

-- Measures the last of the steps, and with a meter times some more. It has no on_train_batch_start:
-- ranks vote after one in each batch (trainer/ranks/consensus.lua).
local function probe(world, found, o)
  local methods, last, began = { all_ranks = true }, 0, nil
  function methods.on_train_start(_, trainer) trainer.max_epochs, trainer.max_steps = -1, -1 end
  function methods.on_before_optimizer_step(_, trainer)
    found.gradients = gradient_bytes(trainer.running)
  end
  function methods.on_train_batch_end(_, trainer)
    local step = trainer.global_step
    if last == STEPS - 1 then
      found.peak = math.max(found.peak, c.runtime.memory(o.device).peak_bytes - found.before
        - found.cut)
    end
    if step < STEPS - 1 or step == last then return end -- within a window
    last = step
    local timeline = world:record(step >= STEPS and o.meter or nil)
    if step < STEPS then return c.runtime.reset_peak_memory() end
    if step == STEPS then
      found.timeline = timeline
      found.parameters = kept_bytes(trainer.running)
      found.state = state_bytes(trainer.running)
      began = c.runtime.clock()
    else
      table.insert(found.timed, timeline)
    end
    if o.meter and (#found.timed < o.timed or c.runtime.clock() - began < o.timed_seconds) then
      return
    end
    found.is_done = true
    error("the steps are made", 0) -- ends the fit
  end
  return Callback.adopt(methods)
end

-- The Trainer as a rank's on the device, from its beginning; to be closed.
local function place(trainer, o)
  local options, kept, fields = trainer.options, {}, {}
  for name, value in next, { strategy = o.strategy, devices = "auto", num_nodes = 1,
    nonfinite = "allow", precision = o.precision or options.precision,
    accelerator = { name = o.device, device = function() return o.device end } } do
    kept[name] = { options[name] }
    options[name] = value
  end
  for name, value in next, { callbacks = dry_run.simplified(trainer.callbacks), loggers = {},
    current_epoch = 0, global_step = 0, should_stop = false, max_epochs = trainer.max_epochs,
    max_steps = trainer.max_steps, progress = false,
    accumulate_grad_batches = trainer.accumulate_grad_batches * (o.half_batch and 2 or 1),
    num_sanity_val_steps = 0, check_val_every_n_epoch = 1 << 30, log_every_n_steps = 1 << 30,
    train_results = false } do
    fields[name] = trainer[name]
    trainer[name] = value or nil
  end
  options.profiler, options.overfit_batches = nil, 0
  placement.set(trainer, options)
  return setmetatable({}, { __close = function()
    for name, value in next, kept do options[name] = value[1] end
    for name, value in next, fields do trainer[name] = value end
  end })
end

-- Undoes what a fit that has ended early leaves: parameters whose memory is on other ranks,
-- gradients and optimizers.
local function clear(trainer, module)
  for _, item in ipairs((walk.tensors(module))) do
    c.dist.fill(item.value)
    item.value.grad = nil
  end
  trainer.optimizers, trainer.lr_scheduler_configs = {}, {}
end

-- The tensors of a module as they are, until the result is closed: fits on another device put
-- others in their places.
local function keep_tensors(module)
  local items = {}
  for i, item in ipairs((walk.tensors(module))) do
    items[i] = { holder = item.holder, key = item.key, value = item.value }
  end
  return setmetatable({}, { __close = function()
    for _, item in ipairs(items) do rawset(item.holder, item.key, item.value) end
  end })
end

-- When the result is closed the module has only what it had before: what configure_model has built
-- is of one strategy.
local function keep_fields(module)
  local had = {}
  for key in next, module do had[key] = true end
  return setmetatable({}, { __close = function()
    for key in next, module do
      if not had[key] then rawset(module, key, nil) end
    end
  end })
end

-- A fit that ends early has lost the other ranks' parts of a module that is divided: here all are
-- there.
local function join_parts(strategy, module)
  local teardown = strategy.teardown
  rawset(strategy, "teardown", function(self)
    if self.join_stages then self:join_stages() end
    if self.divides and self.sharding then self.sharding:leave(true) end
    divided_modules.undo(module)
    self.divides = nil
    return teardown(self)
  end)
end

local function measure(o, world)
  local _ <close> = keep_fields(o.module)
  local _ <close> = keep_tensors(o.module)
  local found = { peak = 0, activations = 0, gradients = 0, state = 0, cut = 0,
    timed = {} }
  c.runtime.collect_fully()
  local is_there = o.module.device == o.device
  found.before = live(o.device) - (is_there and module_bytes(o.module) or 0)
  local trainer = o.trainer
  local _ <close> = place(trainer, o)
  o.strategy.meter = o.meter -- of a strategy that measures what its parts take
  if o.device == "meta" then trainer.strategy.materialize = function() end end
  join_parts(trainer.strategy, o.module)
  local _ <close> = setmetatable({}, { __close = function() world:record() end })
  table.insert(trainer.callbacks, probe(world, found, o))
  local _ <close> = repeat_batches(o)
  local _ <close> = watch_step(o.module, o, found)
  local ok, message = dry_run.call(run.start, trainer, "fit", o.module, o.arguments)
  clear(trainer, o.module)
  if ok then return nil, "no step was made: there is no batch of training data" end
  if not found.is_done then return nil, message end
  found.temporaries = math.max(0, found.peak - found.parameters - found.gradients - found.state
    - found.activations)
  return found
end

local function replicas_of(o)
  local replicas = o.strategy.replicas
  return replicas == "machines" and o.ranks // o.per_node or replicas or 1
end

--- Two steps of o.trainer with o.module and o.arguments of fit, on rank 0 of o.ranks (o.per_node of
--- them on a machine), under o.strategy (an object), with o.precision (nil: the Trainer's) and,
--- with o.half_batch, half of each batch. With o.meter (meters.lua) o.timed more steps follow,
--- and then as many as o.timed_seconds have.
--- Returns bytes of a rank: { parameters = with buffers, gradients =, state = of the optimizers,
--- activations =, temporaries =, peak =, timeline = of a step (stand_in_ranks.lua), timed = a list
--- of those of the timed steps, samples = of the last batch (nil: not known), data_ranks = how many
--- ranks read different ones, device = "meta" or "cpu" }; nil and an error's text.
function rehearsal.run(o)
  local world <close> = stand_in_ranks.open(o.ranks, o.per_node, replicas_of(o))
  for _, device in ipairs(o.on_cpu and { "cpu" } or { "meta", "cpu" }) do
    o.device = device
    local found, message = measure(o, world)
    if found and device == "cpu" and not o.on_cpu then
      found, message = measure(o, world) -- without what the script makes once
    end
    if found then
      found.device, found.why = device, o.why
      return found
    end
    o.why = message
    if not message:find(NO_DATA, 1, true) then return nil, message end
  end
  return nil, o.why
end

return rehearsal
