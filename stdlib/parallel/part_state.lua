--- stdlib/parallel/part_state.lua: states of modules and optimizers with parameters that are cut
--- (core/cuts.lua), as the parts of checkpoints (core/parts.lua), which are ranges of elements.
--
-- Rows of a matrix are a range. Of what is cut along another dim the ranks put the whole together,
-- one tensor at a time, and each gives a range of it.
local c = require "ltrain.c"
local cuts = require "ltrain.core.cuts"
local full_tensor = require "ltrain.parallel.full_tensor"
local has_shape = require "ltrain.core.has_shape"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local part_state = {}

--- This rank's part of a parameter, or of what has its shape, as a range of the whole's elements.
--- All ranks of the cut's group call it.
function part_state.part_of(cut, tensor)
  local first = cuts.range(cut)
  if first then return parts.new { shape = cut.shape, from = first, tensor = tensor } end
  local numel, all = parts.numel(cut.shape), full_tensor(tensor, cut)
  local from = numel * cut.rank // cut.ranks
  local n = numel * (cut.rank + 1) // cut.ranks - from
  return parts.new { shape = cut.shape, from = from,
    tensor = all:flatten():narrow(1, from + 1, n):clone() }
end

--- A module's state_dict with parts. `state` (optional): that, with some of its tensors. All ranks
--- of a cut's group call it, with the same tensors.
function part_state.of_module(module, state)
  state = state or module:state_dict()
  for _, item in ipairs((walk.tensors(module))) do
    local cut = cuts.of(item.value)
    local own = cut and state[item.name]
    if own then state[item.name] = part_state.part_of(cut, own) end
  end
  return state
end

--- fn(cut, slots, slot, value, parameter) for all that a state has of an optimizer's parameters
--- that are cut, in the same order on all ranks.
function part_state.each_slot(optimizer, saved, fn)
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local cut, slots = cuts.of(parameter), saved.state[group.names[i]]
      for slot, value in tree.pairs(cut and slots or {}) do
        fn(cut, slots, slot, value, parameter)
      end
    end
  end
end

--- An optimizer's state_dict with parts: what has the shape of its parameter has its cut.
function part_state.of_optimizer(optimizer, own_tensors)
  local saved = optimizer:state_dict(own_tensors)
  part_state.each_slot(optimizer, saved, function(cut, slots, slot, value, parameter)
    if c.is_tensor(value) and has_shape(value, parameter) then
      slots[slot] = part_state.part_of(cut, value)
    end
  end)
  return saved
end

--- Of a complete state, of which tensors may be in a file, what this rank loads into an optimizer:
--- its parts of what is cut.
function part_state.own_state(optimizer, state)
  local own = {}
  for key, value in next, state do own[key] = value end
  own.state = {}
  for name, slots in next, state.state do
    own.state[name] = {}
    for slot, value in next, slots do own.state[name][slot] = value end
  end
  part_state.each_slot(optimizer, own, function(cut, slots, slot, value)
    if parts.is_tensor(value) and cuts.is_whole(cut, value) then
      slots[slot] = cuts.read(cut, value)
    end
  end)
  return own
end

return part_state
