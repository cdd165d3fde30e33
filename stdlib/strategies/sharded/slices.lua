--- stdlib/strategies/sharded/slices.lua: shards in states: a slice of a parameter as a part of the
--- whole (core/parts.lua), also where the parameter is itself a part (core/cuts.lua).
--
-- Of a part that is not a range of the whole's elements the ranks put the part together from their
-- slices, and then the whole from the parts, one tensor at a time.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local part_state = require "ltrain.parallel.part_state"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"

local slices = {}

--- The elements of a shard, or of what is kept for it, as a part of the whole. All ranks that share
--- the parameter call it, also those whose slice is empty.
function slices.part_of(shard, tensor)
  local parameter = shard.parameter
  local cut = cuts.of(parameter)
  local first = cut and cuts.range(cut) or not cut and 0
  if first then
    return parts.new { shape = cuts.shape(parameter), from = first + shard.from, tensor = tensor }
  end
  local _ <close> = c.no_grad()
  local part = c.zeros({ parameter:numel() }, { dtype = tensor.dtype, device = tensor.device })
  if shard.n > 0 then
    part:narrow(1, shard.from + 1, shard.n):copy_(tensor:detach():reshape { shard.n })
  end
  collectives.all_reduce_(part, { group = shard.replicas.sharers }) -- the others have zeros there
  return part_state.part_of(cut, part:reshape(parameter.shape))
end

-- The first rank, from 0, that has elements of a parameter; nil: all have some.
local function rank_for_empty(shard)
  local first, has_empty = nil, false
  for r = 1, shard.replicas.ranks do
    local n = shard.cuts[r + 1] - shard.cuts[r]
    if n == 0 then has_empty = true else first = first or r - 1 end
  end
  return has_empty and first or nil
end

-- Gives a rank without elements of a part the slots that others have of it, empty ones: it takes
-- part where they are put together.
local function add_empty(shard, name, state)
  local cut, from = cuts.of(shard.parameter), rank_for_empty(shard)
  if not cut or cuts.range(cut) or not from then return end
  local kinds = {}
  for slot, value in tree.pairs(state[name] or {}) do
    if parts.is(value) then kinds[slot] = value.dtype end
  end
  kinds = collectives.broadcast(kinds, { group = shard.replicas.sharers, from = from })
  if shard.n > 0 or next(kinds) == nil then return end
  state[name] = state[name] or {}
  for slot, dtype in next, kinds do
    state[name][slot] = parts.new { shape = shard.parameter.shape, from = shard.from,
      tensor = c.zeros({ 0 }, { dtype = dtype, device = shard.parameter.device }) }
  end
end

--- The state of an optimizer, whose parts are those of its parameters, with parts of the whole.
--- `shards`: a Shards. All ranks call it.
function slices.of_whole(optimizer, saved, shards)
  for _, group in ipairs(optimizer.param_groups) do
    for i, parameter in ipairs(group.params) do
      add_empty(shards.of[parameter], group.names[i], saved.state)
    end
  end
  part_state.each_slot(optimizer, saved, function(_, slots, slot, value, parameter)
    if parts.is(value) then
      slots[slot] = slices.part_of(shards.of[parameter], value.tensor)
    end
  end)
  return saved
end

return slices
