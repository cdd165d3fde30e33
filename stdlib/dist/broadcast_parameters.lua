--- stdlib/dist/broadcast_parameters.lua: broadcasts parameters and buffers from rank 0, of all
--- ranks or of a group.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local cuts = require "ltrain.core.cuts"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local broadcast_parameters = {}

-- Name, shape and dtype of all tensors, as one text a tensor. Ranks that have parts of one have the
-- shape of the whole.
local function shapes_of(items)
  local list = {}
  for i, item in ipairs(items) do
    local cut = cuts.of(item.value)
    list[i] = ("%s [%s] %s%s"):format(item.name, table.concat(cuts.shape(item.value), ", "),
      item.value.dtype, cut and (" in %d parts"):format(cut.ranks) or "")
  end
  return list
end

local function check_shapes(items, group, from)
  local own = shapes_of(items)
  local wanted = collectives.broadcast(own, { group = group, from = from })
  for i = 1, math.max(#own, #wanted) do
    if own[i] ~= wanted[i] then
      errors.blame("ranks built different modules: rank %d has %s, rank %d has %s",
        group and group:ranks()[1] or from or 0, wanted[i] or "nothing more", c.dist.rank(),
        own[i] or "nothing more")
    end
  end
end

--- Copies a list of tensors from rank 0 to all; with a group, from its first rank to its others.
function broadcast_parameters.tensors(list, group)
  local _ <close> = c.allow_update()
  for _, tensor in ipairs(list) do
    local values = tensor:detach()
    collectives.broadcast(values, { out = values, group = group })
  end
end

--- Copies a module's buffers.
function broadcast_parameters.buffers(module, group)
  local list = {}
  for _, buffer in module:named_buffers() do list[#list + 1] = buffer end
  broadcast_parameters.tensors(list, group)
end

-- Named tensors of a table, by position or name.
local function tensors_in(x)
  local items = {}
  for _, leaf in ipairs(tree.leaves(x)) do
    if c.is_tensor(leaf.value) then items[#items + 1] = leaf end
  end
  return items
end

-- Parameters and persistent buffers by their names, sorted.
local function saved_tensors(module)
  local items = {}
  for _, item in ipairs((walk.tensors(module))) do
    if item.buffer ~= "unsaved" then items[#items + 1] = item end
  end
  table.sort(items, function(a, b) return a.name < b.name end)
  return items
end

--- Copies all parameters and persistent buffers of a module, but those that `skips` has, after all
--- ranks were seen to have built the same.
function broadcast_parameters.module(module, skips, group)
  if c.dist.size() == 1 then return end
  local items, list = saved_tensors(module), {}
  check_shapes(items, group)
  for _, item in ipairs(items) do
    if not (skips and skips[item.value]) then list[#list + 1] = item.value end
  end
  broadcast_parameters.tensors(list, group)
end

--- Copies the tensors of a module, or of a table (a state_dict, a list of parameters), from rank
--- `from` to all, after all were seen to have the same.
function broadcast_parameters.all(x, from)
  local items = walk.is_module(x) and saved_tensors(x) or tensors_in(x)
  check_shapes(items, nil, from)
  local _ <close> = c.allow_update()
  for _, item in ipairs(items) do
    local values = item.value:detach()
    collectives.broadcast(values, { out = values, from = from })
  end
end

return broadcast_parameters
