--- stdlib/dist/gather_tree.lua: `self:all_gather`: gathers tensors, and nested tables of them, from
--- all ranks.
--
-- A table goes in one message that also says how it is built, so that an error can report
-- where tables of ranks differ. With sync_grads its float tensors follow, packed: one collective a
-- dtype.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local gather_values = require "ltrain.dist.gather_values"
local is_float = require "ltrain.core.is_float"
local tree = require "ltrain.core.tree"

local function is_gathered(value) return c.is_tensor(value) or type(value) == "number" end

-- The leaves that are gathered, tensors and numbers, in order.
local function leaves_of(x)
  local list = {}
  for _, leaf in ipairs(tree.leaves(x)) do
    if is_gathered(leaf.value) then list[#list + 1] = leaf end
  end
  return list
end

-- What the other ranks receive: how each leaf is made, and its value unless it follows with its
-- gradient.
local function describe(leaves, sync_grads)
  local described = {}
  for i, leaf in ipairs(leaves) do
    local value = leaf.value
    local one = { name = leaf.name, dtype = "number" }
    if c.is_tensor(value) then one.dtype, one.shape = value.dtype, value.shape end
    one.follows = sync_grads and is_float(one.dtype)
    if not one.follows then one.value = one.shape and value:detach() or value end
    described[i] = one
  end
  return described
end

local function show(one)
  if not one then return "nothing more" end
  if not one.shape then return ("%s, a number"):format(one.name) end
  return ("%s, %s [%s]"):format(one.name, one.dtype, table.concat(one.shape, ", "))
end

local function same_sizes(a, b, from)
  if not a or not b then return a == b end
  if #a ~= #b then return false end
  for i = from, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- All ranks must have sent the same leaves; with cat the first size may differ.
local function check(ranks, cat)
  for r = 2, #ranks do
    for i = 1, math.max(#ranks[1], #ranks[r]) do
      local first, one = ranks[1][i], ranks[r][i]
      if not first or not one or first.name ~= one.name or first.dtype ~= one.dtype
        or first.follows ~= one.follows
        or not same_sizes(first.shape, one.shape, 2) then
        errors.blame("all_gather: ranks passed different tables: rank 0 has %s; rank %d has %s",
          show(first), r - 1, show(one))
      elseif not cat and not same_sizes(first.shape, one.shape, 1) then
        errors.blame("all_gather: sizes differ: rank 0 has %s; rank %d has %s (concatenate them "
          .. "with "
          .. "{cat = true})", show(first), r - 1, show(one))
      end
    end
  end
  if not cat then return end
  for _, one in ipairs(ranks[1]) do
    if one.shape and #one.shape == 0 then
      errors.blame("all_gather: cat = true needs a dim to concatenate along: got %s", show(one))
    end
  end
end

local function count(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

-- For each leaf that follows, the list of its parts by rank.
local function gather_packed(leaves, ranks, parts)
  local flat, by_dtype = {}, {}
  for i, leaf in ipairs(leaves) do
    local dtype = ranks[1][i].dtype
    if ranks[1][i].follows then
      flat[dtype] = flat[dtype] or {}
      table.insert(flat[dtype], leaf.value:reshape { leaf.value:numel() })
    end
  end
  for dtype, list in tree.pairs(flat) do
    by_dtype[dtype] = collectives.all_gather(c.cat(list, 1), { cat = true, sync_grads = true })
  end
  local at = {}
  for r, described in ipairs(ranks) do
    for i, one in ipairs(described) do
      if one.follows then
        local size, from = count(one.shape), at[one.dtype] or 1
        parts[i][r] = by_dtype[one.dtype]:narrow(1, from, size):reshape(one.shape)
        at[one.dtype] = from + size
      end
    end
  end
end

local function put_together(one, parts, cat)
  if not one.shape then return c.tensor(parts) end
  if cat then return c.cat(parts, 1) end
  return c.stack(parts, { dim = 1 })
end

--- Of each tensor [...] in x one of [ranks, ...], of each number a tensor [ranks]; with `cat`
--- tensors joined along dim 1. Other leaves stay what they are here. Gradients pass with
--- `sync_grads`.
return function(x, o)
  if c.is_tensor(x) then
    return collectives.all_gather(x, { cat = o.cat, sync_grads = o.sync_grads })
  elseif type(x) ~= "table" and type(x) ~= "number" then
    errors.blame("all_gather: needs a tensor, a number or a table of them: got %s", errors.show(x))
  end
  local leaves = leaves_of(x)
  local ranks = gather_values(describe(leaves, o.sync_grads))
  check(ranks, o.cat)
  local parts = {}
  for i in ipairs(leaves) do
    parts[i] = {}
    for r, described in ipairs(ranks) do parts[i][r] = described[i].value end
  end
  if o.sync_grads then gather_packed(leaves, ranks, parts) end
  local i = 0
  return tree.map(x, function(value)
    if not is_gathered(value) then return value end
    i = i + 1
    local whole = put_together(ranks[1][i], parts[i], o.cat)
    return c.is_tensor(value) and whole:to(value.device) or whole
  end)
end
