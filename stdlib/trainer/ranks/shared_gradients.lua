--- stdlib/trainer/ranks/shared_gradients.lua: reduces the gradients of a fit over the ranks, once
--- an optimizer step.
local c = require "ltrain.c"
local consensus = require "ltrain.trainer.ranks.consensus"
local exchange = require "ltrain.trainer.ranks.exchange"
local parameters_of = require "ltrain.core.parameters_of"

local shared_gradients = {}

--- Makes the gradients of an optimizer those of all ranks: their weighted mean. Every rank comes
--- here at the same steps. Returns the sum of the weights; with 0 there is nothing.
function shared_gradients.reduce(state, optimizer, weight)
  local parameters = parameters_of(optimizer)
  local total, missing = consensus.step(state, weight, c.dist.missing(parameters))
  if total == 0 then return 0 end
  local strategy = state.strategy
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
