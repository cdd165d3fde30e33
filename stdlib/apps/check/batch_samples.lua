--- stdlib/apps/check/batch_samples.lua: replaces samples of a batch: the rows of its tensors.
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"
local tree = require "ltrain.core.tree"

local batch_samples = {}

local function is_plain(value) return type(value) == "table" and getmetatable(value) == nil end

--- The tensors of a batch: a list of {path = "batch[1]", keys =, value =}.
function batch_samples.leaves(value, keys, found)
  keys, found = keys or {}, found or {}
  if c.is_tensor(value) then
    found[#found + 1] = { path = tree.path("batch", keys), keys = keys, value = value }
  elseif is_plain(value) then
    for key, field in tree.pairs(value) do
      local below = table.move(keys, 1, #keys, 1, {})
      below[#below + 1] = key
      batch_samples.leaves(field, below, found)
    end
  end
  return found
end

--- How many samples it has, as the Trainer counts them; nil when its tensors do not agree.
function batch_samples.size(value)
  local n
  for _, leaf in ipairs(batch_samples.leaves(value)) do
    local rows = leaf.value.shape[1]
    if not rows or n and rows ~= n then return nil end
    n = rows
  end
  return n
end

local function rows_of(tensor, positions)
  local rows = {}
  for i, at in ipairs(positions) do rows[i] = tensor:narrow(1, at, 1) end
  return c.cat(rows, 1)
end

--- A batch of the samples at these positions; `n` is the size of the whole.
function batch_samples.rows(value, positions, n)
  if c.is_tensor(value) then return rows_of(value:detach(), positions) end
  if not is_plain(value) then return value end
  local new = {}
  if #value == n and not is_plain(value[1]) and not c.is_tensor(value[1]) then
    for i, at in ipairs(positions) do new[i] = value[at] end -- one text a sample
    return new
  end
  for key, field in next, value do new[key] = batch_samples.rows(field, positions, n) end
  return new
end

--- The batch with another tensor under the keys of a leaf.
function batch_samples.with(value, keys, tensor, depth)
  depth = depth or 1
  if depth > #keys then return tensor end
  local new = {}
  for key, field in next, value do new[key] = field end
  new[keys[depth]] = batch_samples.with(value[keys[depth]], keys, tensor, depth + 1)
  return new
end

--- Values of the same kind that are others: floats with noise, of others the samples the other way
--- round. The second result is false where they could not be changed.
function batch_samples.changed(tensor)
  if is_float(tensor.dtype) then
    local noise = c.randn_like(tensor:to "f32"):to(tensor.dtype)
    return tensor + noise * 0.5 + tensor * 0.3, true
  end
  local turned = tensor:flip(1)
  if not turned:equal(tensor) then return turned, true end
  return tensor, false
end

return batch_samples
