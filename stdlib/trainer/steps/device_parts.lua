--- stdlib/trainer/steps/device_parts.lua: a step of the module under a strategy that splits batches
--- (dp, ddp2).
--
-- The step runs once for each device, with its part of the batch as the running one, and the
-- outputs of all parts are gathered.
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local data_parallel = require "ltrain.strategies.data_parallel"
local hook_calls = require "ltrain.trainer.hook_calls"
local loop = require "ltrain.trainer.loop"

-- Runs the step on device number k, with its part of the batch. Returns how many values it gave,
-- and the first.
local function run_part(state, name, k, part, index, loader_idx)
  local _ <close> = data_parallel.replica(state.strategy, k)
  local batch = batches.transfer_part(state, part, loader_idx or 1)
  loop.set_batch(state, batch)
  local results = table.pack(hook_calls.method(state, name, batch, index, loader_idx))
  return results.n, results[1]
end

-- What the steps of all parts returned, without nil: a list; the numbers of samples of these parts;
-- and whether any returned a value at all. The draws of the first part go on in what follows.
local function run_parts(state, name, batch, ...)
  local parts, note = data_parallel.scatter(batch, #state.strategy.devices)
  if note then state.trainer:note(note) end
  local outputs, sizes, is_given, first, after = {}, {}, false, loop.draws(), nil
  for k, part in ipairs(parts) do
    if k > 1 then loop.begin_device_part(first, k - 1) end
    local n, output = run_part(state, name, k, part.batch, ...)
    is_given = is_given or n > 0
    if output ~= nil then outputs[#outputs + 1], sizes[#sizes + 1] = output, part.size end
    after = after or loop.draws()
  end
  loop.set_draws(after)
  loop.set_batch(state, batch)
  return outputs, sizes, is_given
end

-- The weights of losses: what the steps said they weigh, else their samples.
local function weights_of(outputs, sizes)
  local weights, total = {}, 0.0
  for i, output in ipairs(outputs) do
    local weight = output.weight
    if c.is_tensor(weight) then weight = weight:item() end
    if type(weight) ~= "number" then return sizes, nil end
    weights[i], total = weight, total + weight
  end
  return weights, total
end

-- What one device would have returned: the mean of losses that the parts have each for its samples.
local function with_mean_loss(name, gathered, outputs, sizes)
  local first = outputs[1]
  if c.is_tensor(first) then
    local is_one = first.ndim == 0 or name == "training_step" and first:numel() == 1
    return is_one and data_parallel.mean(gathered, sizes) or gathered
  elseif type(first) == "table" and c.is_tensor(first.loss) and first.loss:numel() == 1 then
    local weights, total = weights_of(outputs, sizes)
    gathered.loss, gathered.weight = data_parallel.mean(gathered.loss, weights), total
  end
  return gathered
end

--- The step on all devices; `step_end`: the row of the module's hook that makes one of the outputs;
--- nil: it has none.
return function(state, name, step_end, batch, ...)
  local outputs, sizes, is_given = run_parts(state, name, batch, ...)
  if not is_given then return end
  if #outputs == 0 then return nil end
  local gathered = data_parallel.gather(outputs, state.strategy.root_device, name)
  if step_end then return hook_calls.method(state, step_end.name, gathered) end
  return with_mean_loss(name, gathered, outputs, sizes)
end
