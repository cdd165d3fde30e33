--- stdlib/parallel/part_state.lua: states of modules and optimizers with parameters that are cut
--- (core/cuts.lua), as the parts of checkpoints (core/parts.lua), which are ranges of elements.
--
-- Rows of a matrix are a range. Of what is cut along another dim the ranks put the whole together,
-- one tensor at a time, and each gives a range of it.
local c = require "ltrain.c"
local cuts = require "ltrain.core.cuts"
local has_shape = require "ltrain.core.has_shape"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"
local whole = require "ltrain.parallel.whole"

local part_state = {}

local function part_of(cut, tensor)
  local first = cuts.range(cut)
  if first then return parts.new { shape = cut.shape, from = first, tensor = tensor } end
  local numel, all = parts.numel(cut.shape), whole.gather(tensor, cut)
  local from = numel * cut.rank // cut.ranks
  local n = numel * (cut.rank + 1) // cut.ranks - from
  return parts.new { shape = cut.shape, from = from,
    tensor = all:flatten():narrow(1, from + 1, n):clone() }
end

--- A module's state_dict with parts. All ranks of a cut's group call it.
function part_state.of_module(module)
  local state = module:state_dict()
  for _, item in ipairs((walk.tensors(module))) do
    local cut = cuts.of(item.value)
    if cut and state[item.name] then state[item.name] = part_of(cut, state[item.name]) end
  end
  return state
end

-- fn(parameter, name, cut) for each parameter of an optimizer that is cut.
local function each_cut(optimizer, fn)
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      local cut = cuts.of(parameter)
      if cut then fn(parameter, group.names[i], cut) end
    end
  end
end

--- An optimizer's state_dict with parts: what has the shape of its parameter has its cut.
function part_state.of_optimizer(optimizer)
  local saved = optimizer:state_dict()
  each_cut(optimizer, function(parameter, name, cut)
    local slots = saved.state[name]
    for slot, value in tree.pairs(slots or {}) do
      if c.is_tensor(value) and has_shape(value, parameter) then
        slots[slot] = part_of(cut, value)
      end
    end
  end)
  return saved
end

--- Loads a complete state, of which tensors may be in a file, into an optimizer: its parts of what
--- is cut.
function part_state.load_optimizer(optimizer, state)
  local own = {}
  for key, value in next, state do own[key] = value end
  own.state = {}
  for name, slots in next, state.state do own.state[name] = slots end
  each_cut(optimizer, function(_, name, cut)
    local slots = state.state[name]
    local mine = slots and {}
    for slot, value in next, slots or {} do
      local is_cut = parts.is_tensor(value) and cuts.is_whole(cut, value)
      mine[slot] = is_cut and cuts.read(cut, value) or value
    end
    own.state[name] = mine
  end)
  optimizer:load_state_dict(parts.whole(own))
end

return part_state
