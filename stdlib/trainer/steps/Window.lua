--- stdlib/trainer/steps/Window.lua: an accumulation window (accumulate_grad_batches): the batches
--- between two optimizer steps, and the weights of their gradients.
--
-- A batch of n samples weighs n/B (B: the nominal batch size), and the gradients of a window are
-- divided once by the sum of its weights: a short last batch counts by its real size. A window of
-- one batch needs neither: n/B cancels.
local batches = require "ltrain.trainer.data.batches"
local data_ranks = require "ltrain.dist.data_ranks"
local hook_calls = require "ltrain.trainer.hook_calls"
local object = require "ltrain.trainer.object"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"
local slices = require "ltrain.trainer.ranks.slices"

local Window = {}

--- The first window of the fit `state`.
function Window.new(state)
  return object(Window, {
    _state = state,
    _batches = 0, -- those that it has had before the running one
    _used = 0, -- how many losses its gradients are of
    _weight = 0.0, -- what these weigh
    _cleared = false, -- whether the gradients of the last step are gone
    _mean_weight = nil, -- of a loss of the last step of manual optimization
    _nominal = nil, -- samples that weigh 1
    _left_open = nil, -- what a fit that has ended has kept of it
  })
end

--- The next batch begins a window.
function Window:close()
  self._batches, self._used, self._weight, self._cleared = 0, 0, 0.0, false
end

--- Whether the running batch is its first one.
function Window:is_empty() return self._batches == 0 end

--- Whether the gradients of the last step are gone.
function Window:is_cleared() return self._cleared end

--- Whether its gradients are of a loss.
function Window:has_loss() return self._used > 0 end

--- Whether the running batch ends it; `is_last`: the epoch ends with it.
function Window:ends(is_last)
  return is_last
    or (self._state.loop.batch_idx + 1) % self._state.trainer.accumulate_grad_batches == 0
end

--- The running batch does not end it.
function Window:add_batch() self._batches = self._batches + 1 end

--- Gradients were added of one loss, or of `count`, that weigh `weight`.
function Window:add(weight, count)
  self._used, self._weight = self._used + (count or 1), self._weight + weight
end

--- Its gradients are computed again, from the running batch alone.
function Window:begin_again()
  self._used, self._weight, self._cleared = 0, 0.0, self._batches > 0
end

--- Once a window: what is left of the last step is not of this one.
function Window:zero_grad(optimizer)
  local state = self._state
  if self._cleared or not optimizer then return end
  self._cleared = true
  hook_calls.hook(state, "on_before_zero_grad", optimizer)
  hook_calls.method(state, "optimizer_zero_grad", state.trainer.current_epoch, state.loop.batch_idx,
    optimizer)
end

--- Before its last backward, of a loss that weighs `weight`.
function Window:begin_reduction(optimizer, weight)
  shared_gradients.begin(self._state, optimizer, self._weight + weight)
end

--- Makes the gradients those of its mean loss, on all ranks.
function Window:reduce(optimizer)
  local state = self._state
  if state.ranks.slices then self._weight = slices.combine(state) end
  if state.ranks.many then
    self:zero_grad(optimizer)
    self._used = shared_gradients.reduce(state, optimizer, self._weight) > 0 and 1 or 0
  elseif self._used > 0 then
    state.strategy:reduce_gradients(optimizer, self._weight, 0, self._weight)
  end
  self._weight = 1.0
end

--- How much this rank's gradients weigh in a step of manual optimization: as much as a loss that
--- went through manual_backward since the last step; those are all of the running batch as a rule.
function Window:take_manual_weight()
  if self._used > 0 then self._mean_weight = self._weight / self._used end
  self._used, self._weight = 0, 0.0
  return self._mean_weight or 1.0
end

--- A batch of manual optimization begins.
function Window:begin_manual() self._mean_weight = nil end

-- The batch size that is a weight of 1: the same on all ranks, however they share a batch.
local function nominal_batch_of(state)
  local source = state.data.train
  local parts = state.ranks.slices and state.ranks.slices.all or data_ranks.size()
  local global = type(source.loader) == "table" and source.loader.global_batch_size
  if global then return global / parts end
  return source.batch_size or state.ranks.many and 1 or nil
end

--- What the running batch weighs: its share of the nominal batch; `count`: its samples, nil: those
--- that it has.
function Window:weight_of(count)
  count = count or batches.count(self._state)
  if not count then return 1.0 end
  self._nominal = self._nominal or nominal_batch_of(self._state) or count
  return count / self._nominal
end

--- Samples that weigh 1; nil before a batch has been weighed.
function Window:nominal_batch() return self._nominal end

function Window:set_nominal_batch(count) self._nominal = count end

-- What checkpoints keep (saving/accumulation_state.lua).

function Window:state_dict()
  return { batches = self._batches, used = self._used, weight = self._weight,
    cleared = self._cleared }
end

--- Takes that back, but for its gradients, which are added.
function Window:load_state_dict(kept)
  self._batches, self._cleared = kept.batches, kept.cleared
end

--- What it had, with its gradients, at the end of the fit; nil: it has not ended.
function Window:left_open() return self._left_open end

function Window:leave_open(kept) self._left_open = kept end

return Window
