-- stdlib/core/parts.lua: parts of tensors: what one rank has of a state that is sharded.
--
-- A part is a contiguous range of a tensor's elements in row-major order (a slice of dim 1, or of
-- the flattened tensor): { shape = of the whole tensor, dtype =, from = its first element, counted
-- from 0, tensor = [n] }. A state in parts is a tree (core/tree.lua) whose leaves are plain values,
-- whole tensors and parts. When such a state is loaded, a leaf may be a tensor of a file that has
-- not been read: an object with `shape`, `dtype`, `read(from, n)` and, if it can fill a contiguous
-- tensor of the host without another one beside it, `read_into(tensor, from)`.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local parts = {}

local Part <const> = {}
Part.__index = Part

-- Parts.

--- The number of elements of a shape.
function parts.numel(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

--- parts.new{shape = of the whole, from =, tensor =, dtype = (the tensor's)}; the tensor may have
--- any shape.
function parts.new(o)
  local tensor = o.tensor:detach()
  local n, whole = tensor:numel(), parts.numel(o.shape)
  if o.from < 0 or o.from + n > whole then
    errors.blame("part: elements %d to %d are not in a tensor [%s] of %d", o.from, o.from + n - 1,
      table.concat(o.shape, ", "), whole)
  end
  return setmetatable({ shape = o.shape, dtype = tensor.dtype, from = o.from, n = n,
    tensor = tensor:reshape { n } }, Part)
end

--- Whether a value is a part.
function parts.is(value) return getmetatable(value) == Part end

--- A whole tensor as a part of itself.
function parts.of(tensor) return parts.new { shape = tensor.shape, from = 0, tensor = tensor } end

--- A tree with copies of its tensors, as parts.
function parts.of_tree(value)
  if c.is_tensor(value) then return parts.of(value:detach():clone()) end
  return type(value) == "table" and tree.map(value, parts.of_tree) or value
end

--- Whether a value is a tensor, or one of a file that has not been read.
function parts.is_tensor(value)
  return c.is_tensor(value) or type(value) == "table" and getmetatable(value) ~= nil
    and value.read ~= nil
end

--- `n` elements of a tensor, or of one of a file, from number `from` on, as [n].
function parts.read(leaf, from, n)
  if not c.is_tensor(leaf) then return leaf:read(from, n) end
  return leaf:detach():reshape { leaf:numel() }:narrow(1, from + 1, n)
end

--- Copies elements of a tensor, or of one of a file, into a tensor: as many as that has, from
--- number `from` on.
function parts.copy(to, leaf, from)
  local fills = not c.is_tensor(leaf) and leaf.read_into and to.device == "cpu"
    and to.dtype == leaf.dtype and to:is_contiguous()
  if fills then return leaf:read_into(to, from) end
  local read <close> = parts.read(leaf, from, to:numel())
  local shaped <close> = read:reshape(to.shape)
  to:copy_(shaped)
end

local function read_all(leaf)
  if not leaf.read_into then return leaf:read(0, parts.numel(leaf.shape)):reshape(leaf.shape) end
  local whole = c.empty(leaf.shape, { dtype = leaf.dtype, device = "cpu" })
  leaf:read_into(whole, 0)
  return whole
end

--- The same tree with whole tensors in place of those of a file.
function parts.whole(value)
  if type(value) ~= "table" then return value end
  if getmetatable(value) ~= nil then return value.read and read_all(value) or value end
  local result = {}
  for key, held in next, value do result[key] = parts.whole(held) end
  return result
end

-- Ranges.

--- What two ranges have in common: from, n; n is 0 where there is nothing.
function parts.overlap(from, n, other, m)
  local first = math.max(from, other)
  return first, math.max(0, math.min(from + n, other + m) - first)
end

--- The first element of `n` that no range of a list of { from =, n = } has; nil: they have all.
function parts.missing(list, n)
  local sorted, at = table.move(list, 1, #list, 1, {}), 0
  table.sort(sorted, function(a, b) return a.from < b.from end)
  for _, range in ipairs(sorted) do
    if range.from > at then break end
    at = math.max(at, range.from + range.n)
  end
  return at < n and at or nil
end

--- Divides tensors of `sizes` bytes, laid end to end, into `ranks` runs of equally many bytes:
--- where run `rank` (from 0) begins and ends in tensor i, in bytes: parts.share(...)(i) -> from, n.
--- Cuts are at multiples of 64 bytes.
function parts.share(sizes, rank, ranks)
  local starts, total = {}, 0
  for i, size in ipairs(sizes) do starts[i], total = total, total + (size + 63) // 64 * 64 end
  local first = total // 64 * rank // ranks * 64
  local stop = total // 64 * (rank + 1) // ranks * 64
  return function(i)
    local from, n = parts.overlap(first, stop - first, starts[i], sizes[i])
    return from - starts[i], n
  end
end

-- States of several ranks.

--- Adds to a tree what it lacks of another one; returns it.
function parts.merge(value, other)
  for key, held in next, other do
    if value[key] == nil then
      value[key] = held
    elseif type(value[key]) == "table" and type(held) == "table" then
      parts.merge(value[key], held)
    end
  end
  return value
end

return parts
