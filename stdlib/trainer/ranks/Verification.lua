--- stdlib/trainer/ranks/Verification.lua: verify_every: ranks compute a batch of another rank
--- again, and compare the bits of loss and gradients, to find hardware that computes wrong.
--
-- In each N-th optimizer step every rank sends the first batch of its window to the next rank,
-- which has the same weights: with the same random numbers and buffers its loss and gradients have
-- the same bits. Where they have not, a third rank computes the batch too, and decides which of the
-- two is wrong; of two ranks each computes both batches again. What the second run of training_step
-- changes in metrics, buffers and logged values is put back.
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local loop = require "ltrain.trainer.loop"
local object = require "ltrain.trainer.object"
local side_effects = require "ltrain.trainer.steps.side_effects"
local tree = require "ltrain.core.tree"

local Verification = {}

-- Why ranks cannot compute each other's batches; nil: they can.
local function why_not(state)
  local strategy, options = state.strategy, state.trainer.options
  if not state.ranks.many then return "it needs several ranks" end
  if not state.automatic then return "manual optimization steps within training_step" end
  if options.sync_batchnorm then return "sync_batchnorm uses the samples of all ranks" end
  if state.ranks.slices then return "deterministic = 'world' computes in slices" end
  if strategy.run_microbatches or strategy.splits_batches or data_ranks.is_shared()
    or not (strategy:is_replicated "parameter" and strategy:is_replicated "gradient") then
    return ("under %s ranks do not have all parameters and gradients: write strategy = 'ddp'")
      :format(errors.show(strategy))
  end
end

--- That of the fit `state`; false where it is not possible, which is reported.
function Verification.new(state)
  local reason = why_not(state)
  if reason then
    state.trainer:warn("verify_every has no effect: " .. reason)
    return false
  end
  return object(Verification, {
    _state = state, _every = state.trainer.options.verify_every,
    _step = nil, -- the last step that was verified
    _own = nil, -- what another rank needs to compute the running batch
    _has_warned = false, -- of batches whose results differ, it is not known why
    _count = 0, _seconds = 0.0, -- what was verified, and how long that took
  })
end

--- Whether the running batch is to be verified: the same on all ranks.
function Verification:is_due()
  local state = self._state
  local step = state.trainer.global_step
  return step % self._every == 0 and step ~= self._step and state.window:is_empty()
    and not state.step_closure:is_again() and not state.data.pass.partial
end

--- Before the running batch is computed.
function Verification:begin()
  local state = self._state
  self._step = state.trainer.global_step
  self._own = { batch = state.loop.batch, index = state.loop.batch_idx,
    draws = c.runtime.rng_get {}, script_drawn = c.runtime.rng_state().script_drawn,
    buffers = side_effects.buffers(state.module) }
end

-- The gradients by number of the parameter, false for none; with `take` parameters have none then.
local function gradients_of(state, take)
  local known, list = state.loop.parameters, {}
  for i, name in ipairs(known.list) do
    local parameter = known.by_name[name]
    list[i] = parameter.grad or false
    if take then parameter.grad = nil end
  end
  return list
end

local function put_gradients(state, list)
  local known = state.loop.parameters
  for i, name in ipairs(known.list) do known.by_name[name].grad = list[i] or nil end
end

-- Hashes of the loss and of each gradient: a list.
local function hashes_of(state, loss)
  local list = { c.runtime.hash { loss and loss:detach() or false } }
  for i, gradient in ipairs(gradients_of(state)) do
    list[i + 1] = c.runtime.hash { gradient }
  end
  return list
end

-- What rank `shift` before this one computes: {batch =, ...}; this rank's own goes as far ahead.
local function receive(packet, shift)
  local rank, size = dist.rank(), dist.world_size()
  if shift == 0 then return packet end
  local sent = dist.send(packet, (rank + shift) % size, { async = true })
  local got = dist.recv((rank - shift) % size)
  sent:wait()
  return got
end

-- Computes the batch of a packet; the state of the run is as before. `run(weight)` runs
-- training_step and backward of the running batch, and returns the loss.
local function compute(self, packet, run)
  local state = self._state
  local _ <close> = side_effects.keep(state)
  side_effects.put_buffers(state.module, packet.buffers)
  local batch = state.strategy:batch_to_device(packet.batch)
  loop.set_batch(state, batch, packet.index)
  side_effects.set_draws(packet.draws, packet.script_drawn)
  local found = hashes_of(state, run(packet.weight or nil))
  gradients_of(state, true)
  return found
end

-- Of each rank the hashes of its batch as rank `shift` behind it has computed them.
local function computed(self, shift, run)
  local of = compute(self, receive(self._own, shift), run)
  local all, size, list = dist.all_gather(of), dist.world_size(), {}
  for owner = 0, size - 1 do list[owner + 1] = all[(owner + shift) % size + 1] end
  return list
end

-- The names of what differs, "loss, head.weight and 3 more"; nil: nothing does.
local function difference(state, a, b)
  local names, more = {}, 0
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] and #names < 3 then
      names[#names + 1] = i == 1 and "loss" or state.loop.parameters.list[i - 1]
    elseif a[i] ~= b[i] then
      more = more + 1
    end
  end
  if #names == 0 then return nil end
  return table.concat(names, ", ") .. (more > 0 and (" and %d more"):format(more) or "")
end

local function is_equal(a, b)
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

local function name_of(state, rank)
  return ("rank %d on %s"):format(rank, state.trainer.world.hosts[rank + 1])
end

-- Which rank is wrong about the batch of `owner`, as hashes of it say: of its own step, of the next
-- rank's, and of others; nil: they do not say it.
local function culprit(owner, own, other, more)
  local size = dist.world_size()
  local next_rank = (owner + 1) % size
  if size > 2 then
    if is_equal(more.third, other) then return owner end
    return is_equal(more.third, own) and next_rank or nil
  end
  local owner_repeats, next_repeats = is_equal(more.own, own), is_equal(more.other, other)
  if owner_repeats == next_repeats then return nil end
  return owner_repeats and next_rank or owner
end

-- All ranks are here, some of whose batches other ranks compute with other bits.
local function complain(self, own, others, run)
  local state, size, wrong, texts = self._state, dist.world_size(), {}, {}
  local third = size > 2 and computed(self, 2, run)
  local own_again = size == 2 and computed(self, 0, run)
  local others_again = size == 2 and computed(self, 1, run)
  for rank = 0, size - 1 do
    local a, b = own[rank + 1], others[rank + 1]
    local what = difference(state, a, b)
    local found = what and culprit(rank, a, b, { third = third and third[rank + 1],
      own = own_again and own_again[rank + 1], other = others_again and others_again[rank + 1] })
    if found and not wrong[found] then
      wrong[found] = true
      texts[#texts + 1] = ("%s (%s)"):format(name_of(state, found), what)
    elseif what and not found then
      texts.unknown = ("%s and %s (%s)"):format(name_of(state, rank),
        name_of(state, (rank + 1) % size), what)
    end
  end
  if #texts > 0 then
    errors.blame("verify_every: %s computes other bits than the others for the same batch (%s): "
      .. "its hardware is faulty, or training_step depends on the rank: the weights are those "
      .. "before this step", table.concat(texts, ", "), loop.place(state))
  end
  if self._has_warned then return end
  self._has_warned = true
  state.trainer:warn(("verify_every: %s compute different bits for the same batch (%s), and it is "
    .. "not known which is wrong: training_step may depend on the rank or on what it did before, "
    .. "or the hardware of one is faulty"):format(texts.unknown, loop.place(state)))
end

--- The running batch was computed: its loss (nil: it had none) weighs `weight`. Raises on all ranks
--- when one of them computes wrong.
function Verification:compare(loss, weight, run)
  local state, began, packet = self._state, c.runtime.clock(), self._own
  packet.weight = loss and weight or false
  packet.batch = tree.map(packet.batch, function(leaf)
    return c.is_tensor(leaf) and leaf:detach() or leaf
  end)
  exchange("verification", function()
    local own = hashes_of(state, loss)
    local kept = gradients_of(state, true)
    local others = computed(self, 1, run)
    local owns = dist.all_gather(own)
    for rank = 1, #owns do
      if not is_equal(owns[rank], others[rank]) then
        complain(self, owns, others, run)
        break
      end
    end
    put_gradients(state, kept)
  end)
  self._own = nil
  self._count, self._seconds = self._count + 1, self._seconds + c.runtime.clock() - began
end

--- Prints what it has cost, of `seconds` of the fit.
function Verification:report(seconds)
  if self._count == 0 then return end
  self._state.trainer:say(("verify_every = %d: %d checks in %.2f s, %.1f %% of the time"):format(
    self._every, self._count, self._seconds, 100 * self._seconds / math.max(seconds, 1e-9)))
end

return Verification
