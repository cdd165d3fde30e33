--- stdlib/trainer/ranks/shared_gradients.lua: reduces the gradients of a fit over the ranks, once
--- an optimizer step.
local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local consensus = require "ltrain.trainer.ranks.consensus"
local exchange = require "ltrain.trainer.ranks.exchange"
local hook_calls = require "ltrain.trainer.hook_calls"
local parameters_of = require "ltrain.core.parameters_of"

local shared_gradients = {}

-- Whether a script may use the gradients of this rank after backward, or runs several.
local function is_open_to_scripts(state)
  return hook_calls.defined(state, "on_after_backward")
    or hook_calls.overrides(state.module, "backward", Module)
end

--- Before the last backward of a step.
function shared_gradients.begin(state, optimizer, weight)
  if not state.ranks.many or state.ranks.slices or is_open_to_scripts(state) then return end
  local strategy = state.strategy
  exchange("gradients", strategy.before_last_backward, strategy, optimizer, weight)
end

-- Whether a script may change gradients after they were reduced.
local function is_open_until_step(state)
  return not state.automatic or state.scaler
    or hook_calls.defined(state, "on_before_optimizer_step")
    or hook_calls.defined(state, "configure_gradient_clipping")
end

--- Makes the gradients of an optimizer those of all ranks: their weighted mean. Every rank comes
--- here at the same steps. Returns the sum of the weights; with 0 there is nothing.
function shared_gradients.reduce(state, optimizer, weight)
  local strategy, own_missing = state.strategy, nil
  if state.automatic and not state.ranks.slices then
    own_missing = exchange("gradients", strategy.after_last_backward, strategy, optimizer, weight)
  end
  own_missing = own_missing or c.dist.missing(parameters_of(optimizer))
  local own = strategy.step_numbers
    and strategy:step_numbers(optimizer, weight, is_open_until_step(state))
  local total, missing, sums = consensus.step(state, weight, own_missing, own)
  if own then strategy:take_step_numbers(optimizer, sums) end
  if total == 0 then return 0 end
  exchange("gradients", strategy.reduce_gradients, strategy, optimizer, total, missing, weight)
  return total
end

--- Manual optimization: makes the gradients of an optimizer those of all ranks, once for each of
--- its steps.
function shared_gradients.sync(state, optimizer)
  if not state.ranks.many or state.ranks.synced[optimizer] then return end
  state.ranks.synced[optimizer] = true
  shared_gradients.reduce(state, optimizer, state.window:take_manual_weight())
end

--- Begins a fit.
function shared_gradients.prepare(state)
  state.ranks.synced = {}
end

--- An optimizer has stepped: its next step shares again.
function shared_gradients.stepped(state, optimizer)
  state.ranks.synced[optimizer] = nil
end

return shared_gradients
