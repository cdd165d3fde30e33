--- stdlib/strategies/pipeline/schedules.lua: in which order each rank of a pipeline runs the
--- forward and backward passes of the microbatches of a batch.
--
-- Rank r of p ranks (from 0) has `chunks` chunks of layers: chunk v (from 1) of it is virtual stage
-- (v - 1) * p + r + 1. An action is { kind =, chunk =, microbatch = }: kind "F" is a forward; "B" a
-- backward; of a schedule that divides backward "I" is the gradients of the inputs, which the stage
-- before waits for, and "W" those of the weights, which nobody waits for.
--
--   gpipe        all forwards, then all backwards (Huang et al. 2019)
--   1f1b         a stage keeps at most p microbatches: after as many forwards as there are stages
--                behind it, one forward, one backward (PipeDream-Flush, Narayanan et al. 2021)
--   interleaved  1f1b over p * chunks virtual stages, with a bubble as many times smaller
--                (Narayanan et al. 2021, section 2.2)
--   zero_bubble  ZB-H1 of Qi et al. 2023: weight gradients fill the bubble at the end
local schedules = {}

local function action(kind, chunk, microbatch)
  return { kind = kind, chunk = chunk, microbatch = microbatch }
end

local function gpipe(_, _, microbatches)
  local list = {}
  for k = 1, microbatches do list[k] = action("F", 1, k) end
  for k = 1, microbatches do list[microbatches + k] = action("B", 1, k) end
  return list
end

-- `warmup` forwards, then a forward and a backward in turns, then the backwards that are left.
-- `forward(i)`, `backward(i)`: the i-th of `count` of each.
local function one_forward_one_backward(warmup, count, forward, backward)
  local list = {}
  for i = 1, warmup do list[#list + 1] = forward(i) end
  for i = warmup + 1, count do
    list[#list + 1] = forward(i)
    list[#list + 1] = backward(i - warmup)
  end
  for i = count - warmup + 1, count do list[#list + 1] = backward(i) end
  return list
end

local function one_f_one_b(rank, stages, microbatches)
  return one_forward_one_backward(math.min(stages - 1 - rank, microbatches), microbatches,
    function(k) return action("F", 1, k) end, function(k) return action("B", 1, k) end)
end

-- The i-th pair of chunk and microbatch: groups of as many microbatches as there are ranks go
-- through a chunk after the other.
local function in_groups(i, stages, microbatches, chunks)
  local of_group = stages * chunks
  local group, place = (i - 1) // of_group, (i - 1) % of_group
  local size = math.min(stages, microbatches - group * stages)
  return place // size + 1, group * stages + place % size + 1
end

local function interleaved(rank, stages, microbatches, chunks)
  local count = microbatches * chunks
  local warmup = (stages - rank - 1) * 2 + (chunks - 1) * stages
  -- A last group that is not full would have a stage wait for itself: all forwards come first.
  if microbatches % stages ~= 0 then warmup = count end
  return one_forward_one_backward(math.min(warmup, count), count, function(i)
    return action("F", in_groups(i, stages, microbatches, chunks))
  end, function(i)
    local chunk, microbatch = in_groups(i, stages, microbatches, chunks)
    return action("B", chunks + 1 - chunk, microbatch)
  end)
end

-- As 1f1b with the gradients of inputs in place of backward; those of the weights follow `rank`
-- microbatches later, so that no stage keeps more microbatches than with 1f1b.
local function zero_bubble(rank, stages, microbatches)
  local list, weights, inputs = {}, 0, 0
  for _, one in ipairs(one_f_one_b(rank, stages, microbatches)) do
    if one.kind == "B" then
      inputs = inputs + 1
      list[#list + 1] = action("I", 1, one.microbatch)
      if inputs > rank then
        weights = weights + 1
        list[#list + 1] = action("W", 1, weights)
      end
    else
      list[#list + 1] = one
    end
  end
  for k = weights + 1, microbatches do list[#list + 1] = action("W", 1, k) end
  return list
end

local MAKERS <const> = { gpipe = gpipe, ["1f1b"] = one_f_one_b, interleaved = interleaved,
  zero_bubble = zero_bubble }

--- Names of the schedules.
schedules.names = { "1f1b", "gpipe", "interleaved", "zero_bubble" }

--- Returns the list of actions of each rank (the first is rank 0's). `chunks`: of a rank, 1 but for
--- "interleaved".
function schedules.of(name, stages, microbatches, chunks)
  local ranks = {}
  for rank = 0, stages - 1 do
    ranks[rank + 1] = MAKERS[name](rank, stages, microbatches, chunks or 1)
  end
  return ranks
end

--- The virtual stage of a rank's chunk, from 1.
function schedules.stage_of(rank, chunk, stages) return (chunk - 1) * stages + rank + 1 end

--- Returns the fraction of a batch's time in which a rank waits, where all stages take equally
--- long, and messages no time: forward a third of it, the gradients of inputs and of weights each a
--- third.
function schedules.bubble(name, stages, microbatches, chunks)
  local idle, busy = stages - 1, microbatches
  if name == "interleaved" and microbatches % stages == 0 then busy = microbatches * chunks end
  if name == "zero_bubble" then busy = microbatches * 3 end
  return idle / (idle + busy)
end

return schedules
