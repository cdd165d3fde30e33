--- stdlib/trainer/steps/batch.lua: runs training_step and the backward pass of one batch.
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"
local hook_calls = require "ltrain.trainer.hook_calls"
local errors = require "ltrain.core.errors"
local loop = require "ltrain.trainer.loop"
local module_step = require "ltrain.trainer.steps.module_step"
local overrides = require "ltrain.trainer.setup.overrides"
local slices = require "ltrain.trainer.ranks.slices"

local batch = {}

local INF <const> = math.huge
local is_walked <const> = c.runtime.is_walked
local places <const> = c.runtime.places

-- Raises when a loss is of no use.
local function check_loss(state, loss)
  if loss:numel() ~= 1 then
    errors.blame("training_step: the loss must have one element: got %s: reduce it "
      .. "with :mean() or :sum()", errors.show(loss))
  elseif state.automatic and not loss.requires_grad then
    errors.blame("training_step: the loss depends on no parameter that requires grad: was it "
      .. "detached, computed under no_grad, or from numbers (item)?")
  elseif state.automatic and is_walked(loss) then
    errors.blame("training_step: backward was called on the loss that is returned, and the Trainer "
      .. "calls it: return the loss alone, or set self.automatic_optimization = false")
  end
end

-- What a batch says that it weighs, as a number.
local function check_weight(weight)
  local number = weight
  if c.is_tensor(weight) and weight:numel() == 1 then number = weight:item() end
  if type(number) ~= "number" or not (number >= 0 and number < INF) then
    errors.blame("training_step: weight must be a number, at least 0 and finite: got %s",
      errors.show(weight))
  end
  return number
end

-- loss and sample weight out of what training_step returned.
local function read_outputs(state, count, outputs)
  if outputs == nil then
    if count == 0 and not state.loop.has_stepped then
      errors.blame("%s: nothing was returned (%s): return the loss, or nil to skip a batch",
        state.hooks.training_step_end and "training_step_end" or "training_step",
        loop.place(state))
    end
    return nil
  end
  local loss, weight = outputs, nil
  if type(outputs) == "table" then loss, weight = outputs.loss, outputs.weight end
  if not c.is_tensor(loss) then
    errors.blame("training_step: return the loss (a tensor), a table with loss, or nil: got %s",
      type(outputs) == "table" and ("a table with loss = %s"):format(errors.show(loss))
      or errors.show(outputs) .. (type(outputs) == "number" and ": leave out :item()" or ""))
  end
  -- Later ones are of the same make; backward refuses what is not.
  if not state.loop.has_stepped then check_loss(state, loss) end
  if weight ~= nil then weight = check_weight(weight) end
  return loss, weight
end

-- What is open around training_step and backward: with detect_anomaly a look at every operation.
local function detection_scope(state)
  if not state.trainer.options.detect_anomaly then return nil end
  -- A scale that is too large makes infinities, and is then lowered.
  local strict = overrides.stops_at_infinities and not state.scaler
  return strict and c.runtime.detect_infinities() or c.detect_anomaly()
end

local function count_and_first(...) return select("#", ...), (...) end

-- Runs the module's training_step; returns how many values it gave, and the first.
local function training_step(state)
  return count_and_first(module_step.run(state, "training_step", state.loop.batch,
    state.loop.batch_idx))
end

local function run_backward(state, loss, weight, ...)
  local strategy = state.strategy
  loss = state.scaling:scale(loss)
  hook_calls.through(state, "backward", strategy.backward, strategy, loss, weight, ...)
end

--- backward of a loss that weighs `weight`, with its hooks; its other arguments follow.
function batch.backward(state, loss, weight, ...)
  hook_calls.hook(state, "on_before_backward", loss)
  do
    local _ <close> = state.strategy:backward_scope()
    if state.step_graph then
      local outputs = state.step_graph:backward(run_backward, loss, weight)
      if outputs then state.loop.outputs = outputs end
    else
      run_backward(state, loss, weight, ...)
    end
  end
  hook_calls.hook(state, "on_after_backward")
end

-- Collectives of a step, which all ranks that are in it walk back.
local function end_collective_step(state)
  if not state.ranks.many then return end
  state.window:zero_grad(state.optimizers[1]) -- there may be gradients although there is no loss
  state.strategy:end_collectives()
end

-- One batch; `alone`: the window has no other; `continues`: another part of the batch follows. The
-- loss, and what it weighs; nil where there was none.
local function run_forward_backward(state, alone, continues)
  local window, progress, optimizer = state.window, state.progress, state.optimizers[1]
  if state.loop.outside then return nil end
  local _ <close> = detection_scope(state)
  if state.ranks.many then c.dist.begin_step() end
  local count, outputs
  if state.step_graph then
    count, outputs = state.step_graph:forward(training_step, alone)
  else
    count, outputs = training_step(state)
  end
  places.source = state.module.training_step
  local loss, weight = read_outputs(state, count, outputs)
  state.loop.outputs = outputs
  if loss == nil or weight == 0 then
    if not state.step_closure:is_again() then progress.skipped = progress.skipped + 1 end
    end_collective_step(state)
    places.source = nil
    return nil
  end
  state.nonfinite:check_loss(loss)
  state.loop.has_stepped = true
  places.source = optimizer and places.source
  if not optimizer then return loss end
  window:zero_grad(optimizer)
  weight = alone and not state.ranks.many and 1.0 or window:weight_of(weight)
  if state.step_closure:is_open() and not continues then
    window:begin_reduction(optimizer, weight)
  end
  batch.backward(state, loss, weight)
  end_collective_step(state)
  places.source = nil
  window:add(weight)
  return loss, weight
end

-- Runs training_step and backward of the running batch again, whose loss weighs `weight` (nil: no
-- backward); returns the loss.
local function run_again(state, weight)
  c.dist.begin_step()
  local loss = read_outputs(state, training_step(state))
  if loss and weight then batch.backward(state, loss, weight) end
  state.strategy:end_collectives()
  return loss
end

-- The same as run_forward_backward, with what other ranks find of it where that is due.
local function run_verified(state, alone, continues)
  local verification = state.verification
  if not (verification and not state.loop.outside and verification:is_due()) then
    return run_forward_backward(state, alone, continues)
  end
  verification:begin()
  local loss, weight = run_forward_backward(state, alone, true)
  verification:compare(loss, weight, function(own) return run_again(state, own) end)
  return loss, weight
end

-- What a strategy that runs microbatches needs of the trainer: see Strategy.run_microbatches.
local function calls_for_microbatches(state)
  return {
    step = function() return training_step(state) end,
    loss = function(count, outputs)
      places.source = state.module.training_step
      local loss, weight = read_outputs(state, count, outputs)
      places.source = nil
      if loss == nil or weight == 0 then return nil end
      state.nonfinite:check_loss(loss)
      state.loop.has_stepped = true
      return loss, state.window:weight_of(weight)
    end,
    backward = function(loss, weight) batch.backward(state, loss, weight) end,
  }
end

-- One batch in microbatches; its loss, the same on all ranks of a pipeline.
local function run_microbatches(state)
  if state.loop.outside then return nil end
  local _ <close> = detection_scope(state)
  if state.ranks.many then c.dist.begin_step() end
  state.window:zero_grad(state.optimizers[1])
  local microbatches = require "ltrain.trainer.steps.microbatches"
  local loss = microbatches.run(state, calls_for_microbatches(state))
  if loss == nil and not state.step_closure:is_again() then
    state.progress.skipped = state.progress.skipped + 1
  end
  end_collective_step(state)
  return loss
end

-- The same once a slice (deterministic = "world").
local function run_slices(state)
  local first, loss = state.ranks.slices.first, nil
  for i, part in ipairs(state.loop.slice_batches) do
    if part then
      slices.enter(state, i)
      loop.begin_part(first + i - 1, "train", state.progress.train_batches - 1)
      loop.set_batch(state, batches.transfer(state, part, 1))
      local own, weight = run_forward_backward(state, false)
      loss = own or loss
      slices.leave(state, i, weight)
    end
  end
  slices.track(state)
  return loss
end

-- The batch is whole again when the result is closed.
local function in_parts(state, whole)
  state.loop.in_microbatches = true
  return setmetatable({}, { __close = function()
    state.loop.in_microbatches = false
    loop.set_batch(state, whole)
  end })
end

-- A running mean of losses: with `loss` of `weight` the mean of all that weigh `sum`.
local function mean_with(mean, loss, weight, sum)
  local _ <close> = c.no_grad()
  if not mean or sum == 0 then return loss:detach() end
  return mean + (loss:detach() - mean) * (weight / sum)
end

-- The same once for each part of the batch (ranks/elastic.lua): all ranks that have samples have as
-- many parts. Returns the mean of the losses.
local function run_parts(state, alone)
  local whole, progress = state.loop.batch, state.progress
  if state.loop.outside then return nil end
  local split = require "ltrain.strategies.data_parallel".split
  local count = state.ranks.parts
  local parts = split(whole, math.min(count,
    state.data.train.least(state.loop.batch_idx) or count))
  if #parts == 1 then return (run_verified(state, alone)) end
  local first, skipped, mean, sum = data_ranks.replica() * count, progress.skipped, nil, 0.0
  local _ <close> = in_parts(state, whole)
  for i, part in ipairs(parts) do
    loop.begin_part(first + i - 1, "train", progress.train_batches - 1)
    loop.set_batch(state, part)
    local loss, weight = run_verified(state, false, i < #parts)
    if loss then
      sum = sum + (weight or 1.0)
      mean = mean_with(mean, loss, weight or 1.0, sum)
    end
  end
  progress.skipped = mean and skipped or math.min(progress.skipped, skipped + 1)
  return mean
end

--- training_step and backward of the running batch, whole, in slices or in parts; `alone`: the
--- window has no other. Returns the loss, nil where there was none.
function batch.run(state, alone)
  if state.ranks.slices then return run_slices(state) end
  if state.strategy.run_microbatches then return run_microbatches(state) end
  if state.ranks.parts > 1 then return run_parts(state, alone) end
  if state.verification then return (run_verified(state, alone)) end
  return (run_forward_backward(state, alone))
end

--- training_step of manual optimization, which does it all.
function batch.run_manual(state)
  local _ <close> = detection_scope(state)
  local _, outputs = training_step(state)
  state.loop.outputs = outputs
  state.scaling:end_batch()
  local loss = type(outputs) == "table" and outputs.loss or outputs
  if type(loss) == "userdata" then
    check_loss(state, loss)
    state.nonfinite:check_loss(loss, true)
  end
  state.loop.has_stepped = true
end

return batch
