--- stdlib/strategies/pipeline/microbatches.lua: cuts a batch into microbatches along dim 1.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

-- The samples of a batch: the first size that its tensors have.
local function count_of(batch)
  local count
  tree.each(batch, function(leaf, keys)
    if not c.is_tensor(leaf) or leaf.ndim == 0 then return end
    count = count or leaf.shape[1]
    if leaf.shape[1] ~= count then
      errors.blame("strategies.Pipeline: tensors of a batch must have one size of dim 1, along "
        .. "which microbatches are cut: got %d and %d (%s)", count, leaf.shape[1],
        tree.path("batch", keys))
    end
  end)
  return count
end

local function is_table(value) return type(value) == "table" and getmetatable(value) == nil end

-- Whether a value is a list with an element for each sample: texts, numbers.
local function is_list_of(value, samples)
  if #value ~= samples or samples == 0 then return false end
  for _, element in ipairs(value) do
    if c.is_tensor(element) or is_table(element) then return false end
  end
  return true
end

-- `n` samples of a batch of `samples` from number `from` (from 1) on.
local function cut(value, from, n, samples)
  if c.is_tensor(value) then return value.ndim > 0 and value:narrow(1, from, n) or value end
  if not is_table(value) then return value end
  if is_list_of(value, samples) then return table.move(value, from, from + n - 1, 1, {}) end
  local part = {}
  for key, element in next, value do part[key] = cut(element, from, n, samples) end
  return part
end

--- microbatches(batch, count) returns a list of at most `count` parts of a batch, the first ones
--- larger by a sample where they cannot be equal. Tensors are views; lists of as many texts or
--- numbers as there are samples are cut too; each part has the rest.
return function(batch, count)
  local samples = count_of(batch)
  if not samples then
    errors.blame("strategies.Pipeline: the batch has no tensor with a dim to cut microbatches "
      .. "along: got %s", errors.show(batch))
  end
  count = math.max(math.min(count, samples), 1)
  local parts, from = {}, 1
  for k = 1, count do
    local n = samples // count + (k <= samples % count and 1 or 0)
    parts[k] = cut(batch, from, n, samples)
    from = from + n
  end
  return parts
end
