--- stdlib/files/shard_plan.lua: which rank writes what of a sharded checkpoint.
--
-- Of a tensor that the ranks have parts of each writes its own, of a range that several have the
-- one with least to write. A tensor that all have is dealt out by bytes; one that some have is
-- written by the first of them, and so is a buffer: a rank's running averages are of its samples,
-- and bytes of several ranks' would be nobody's.
local dtypes = require "ltrain.core.dtypes"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"

local shard_plan = {}

--- What rank 0 needs to know of the tensors that a rank has. `buffers` (optional): the names of
--- those that ranks may have with other values.
function shard_plan.describe(tensors, buffers)
  local described = {}
  for name, tensor in next, tensors do
    local is_part = parts.is(tensor)
    described[name] = { shape = tensor.shape, dtype = tensor.dtype, is_part = is_part,
      is_buffer = buffers and buffers[name] or nil,
      from = is_part and tensor.from or 0, n = is_part and tensor.n or tensor:numel() }
  end
  return described
end

-- The ranks that have a tensor, by name: { shape =, dtype =, [rank + 1] = { from =, n = } }; and
-- which are parts.
local function collect(all)
  local found = {}
  for r, described in ipairs(all) do
    for name, one in next, described do
      local of = found[name] or { shape = one.shape, dtype = one.dtype, holders = {} }
      found[name] = of
      of.is_part = of.is_part or one.is_part
      of.is_buffer = of.is_buffer or one.is_buffer
      table.insert(of.holders, { rank = r - 1, from = one.from, n = one.n })
    end
  end
  return found
end

-- A range that several ranks have is written by the one that has least to write so far.
local function cuts_of_parts(holders, written, size)
  local cuts, by_range = {}, {}
  for _, one in ipairs(holders) do
    local key = ("%d %d"):format(one.from, one.n)
    local cut = by_range[key]
    if one.n > 0 and not cut then
      cut = { from = one.from, n = one.n, rank = one.rank }
      by_range[key], cuts[#cuts + 1] = cut, cut
    elseif cut and written[one.rank] < written[cut.rank] then
      cut.rank = one.rank
    end
  end
  for _, cut in ipairs(cuts) do written[cut.rank] = written[cut.rank] + cut.n * size end
  return cuts
end

-- Divides tensors that all ranks have among them.
local function deal(found, names, ranks)
  local sizes = {}
  for i, name in ipairs(names) do
    sizes[i] = parts.numel(found[name].shape) * dtypes[found[name].dtype].size
    found[name].cuts = {}
  end
  for rank = 0, ranks - 1 do
    local share = parts.share(sizes, rank, ranks)
    for i, name in ipairs(names) do
      local from, bytes = share(i)
      local size = dtypes[found[name].dtype].size
      if bytes > 0 then
        table.insert(found[name].cuts, { rank = rank, from = from // size, n = bytes // size })
      end
    end
  end
end

--- The plan for what the ranks have described, a list: by name { shape =, dtype =, cuts = }, each
--- cut { rank =, from =, n = }, in the order of `from`.
function shard_plan.make(all)
  local found, dealt, written = collect(all), {}, {}
  for r = 1, #all do written[r - 1] = 0 end
  for name, of in tree.pairs(found) do
    local whole = not of.is_part and parts.numel(of.shape) > 0
    if whole and #of.holders == #all and #all > 1 and not of.is_buffer then
      dealt[#dealt + 1] = name
    elseif whole then
      of.cuts = { of.holders[1] }
    else
      of.cuts = cuts_of_parts(of.holders, written, dtypes[of.dtype].size)
      table.sort(of.cuts, function(a, b) return a.from < b.from end)
    end
  end
  deal(found, dealt, #all)
  return found
end

--- What each rank is to write: by rank, a list of { name =, from =, n = }.
function shard_plan.tasks(found, ranks)
  local tasks = {}
  for r = 1, ranks do tasks[r] = {} end
  for name, of in tree.pairs(found) do
    for _, cut in ipairs(of.cuts) do
      table.insert(tasks[cut.rank + 1], { name = name, from = cut.from, n = cut.n })
    end
  end
  return tasks
end

--- The field `sharded` of an index, without the files. `id`: of the save; `aliases`: names, with
--- those that have their bytes.
function shard_plan.index(found, aliases, id, ranks)
  local index = { id = id, ranks = ranks, files = {}, tensors = {}, aliases = aliases }
  for name, of in next, found do
    local cuts = {}
    for i, cut in ipairs(of.cuts) do cuts[i] = { cut.rank, cut.from, cut.n } end
    index.tensors[name] = { shape = of.shape, dtype = of.dtype, cuts = cuts }
  end
  return index
end

return shard_plan
