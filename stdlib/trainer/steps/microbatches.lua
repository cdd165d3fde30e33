--- stdlib/trainer/steps/microbatches.lua: runs a training batch in parts, in the order that the
--- strategy decides (pipeline parallelism).
--
-- A microbatch draws its own random numbers, as a slice of deterministic = "world" does, whoever
-- runs it; batch norm takes its statistics. What it logs is put together with what the others of
-- the batch log.
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"
local hook_calls = require "ltrain.trainer.hook_calls"
local loop = require "ltrain.trainer.loop"
local split = require "ltrain.strategies.pipeline.microbatches"

local microbatches = {}

local function enter(state, parts, k)
  local first = data_ranks.replica() * state.strategy.microbatches
  loop.begin_part(first + k - 1, "train", state.progress.train_batches - 1)
  loop.set_batch(state, parts[k])
end

-- The batch is whole again when the result is closed.
local function in_parts(state)
  local whole = state.loop.batch
  state.loop.in_microbatches = true
  return setmetatable({}, { __close = function()
    state.loop.in_microbatches = false
    loop.set_batch(state, whole)
  end })
end

-- What training_step has returned on this rank, with the loss of the whole batch; the loss alone
-- where it has returned that, or nothing.
local function outputs_of(loss, last)
  if type(last) ~= "table" or loss == nil then return loss end
  local outputs = {}
  for key, value in next, last do outputs[key] = value end
  outputs.loss = loss
  return outputs
end

--- Runs the batch; returns its loss, nil without one. `calls`: step() returns how many values
--- training_step gave, and the first; loss(count, outputs) the loss and its weight, or nil;
--- backward(loss, weight).
function microbatches.run(state, calls)
  local parts = split(state.loop.batch, state.strategy.microbatches)
  local last, weight = nil, 0.0
  local loss, used, own_weight
  do
    local _ <close> = in_parts(state)
    loss, used, own_weight = state.strategy:run_microbatches {
      count = #parts,
      forward = function(k)
        enter(state, parts, k)
        return calls.step()
      end,
      loss = function(count, outputs)
        last = outputs
        return calls.loss(count, outputs)
      end,
      backward = calls.backward,
      backward_from = function(walk)
        local _ <close> = state.strategy:backward_scope()
        walk()
        hook_calls.hook(state, "on_after_backward")
      end,
    }
    for k = 1, used and 0 or #parts do -- on the other stages: what all samples weigh
      loop.set_batch(state, parts[k])
      weight = weight + state.window:weight_of()
    end
  end
  if (used or #parts) > 0 then state.window:add(own_weight or weight, used or #parts) end
  state.loop.outputs = outputs_of(loss and c.is_tensor(loss) and loss or nil, last)
  return loss
end

return microbatches
