--- stdlib/dist/OverlappedSteps.lua: gradients of a Trainer's steps, which a Reducer reduces while
--- the last backward of a step runs: what strategies call from their methods of a step.
local class = require "ltrain.core.class"
local parameters_of = require "ltrain.core.parameters_of"

local OverlappedSteps = class.extend(nil, "OverlappedSteps")

--- OverlappedSteps(reducer), of a Reducer that can overlap.
function OverlappedSteps:init(reducer)
  self.reducer = reducer
  self.expected = nil -- the overlap of the backward that comes
  self.is_reduced = false -- the gradients of the step are
end

--- Strategy.before_last_backward: the backward that comes is the last before the optimizer's step.
function OverlappedSteps:expect(optimizer, weight)
  self.expected = self.reducer:expect(parameters_of(optimizer), weight, optimizer)
end

--- Returns a value to be closed after a backward, whose gradients are reduced meanwhile if it was
--- expected; else nil.
function OverlappedSteps:begin()
  local expected = self.expected
  self.expected = nil
  return expected and expected:begin()
end

--- Strategy.after_last_backward: waits for the sums of all ranks; returns how many gradients of
--- this rank were nil.
function OverlappedSteps:finish(optimizer, weight)
  self.expected = nil
  local total, missing = self.reducer:finish(parameters_of(optimizer), weight, optimizer)
  self.is_reduced = total > 0
  return missing
end

--- Strategy.reduce_gradients: whether the gradients are reduced already. `missing`: how many were
--- nil, over all ranks; those that no rank had are nil again. All ranks call it.
function OverlappedSteps:take(optimizer, missing)
  if not self.is_reduced then return false end
  self.is_reduced = false
  if missing > 0 then self.reducer:drop_unused(optimizer) end
  return true
end

return OverlappedSteps
