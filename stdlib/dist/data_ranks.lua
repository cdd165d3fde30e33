--- stdlib/dist/data_ranks.lua: which ranks read samples of their own, and which of them count in
--- sums.
--
-- By default each rank does both. Where ranks work on the same samples (tensor, pipeline and
-- context parallel), a strategy says so by the dims of its mesh: along `reads` ranks read different
-- samples; along `sums` each has a part of its own of every sum: of gradients, of weights, of
-- metrics. The rest of the dims is one replica of the module: what its ranks log and count is the
-- same, or is on its last rank alone (the last stage of a pipeline).
local c = require "ltrain.c"

local d = c.dist

local data_ranks = {}

local current = nil -- { rank =, size =, group =, replicas = lists of ranks, index = }

--- Until the result is closed, samples are shared along the dims `reads` of a mesh, and sums are
--- over the dims `sums` (lists of names, not empty; those of `reads` are among them). All ranks
--- call it.
function data_ranks.use(mesh, reads, sums)
  local outer, now = current, { replicas = {} }
  now.rank, now.size = mesh:number(reads)
  now.index = mesh:number(sums)
  for rank = 0, d.size() - 1 do
    local i = mesh:number(sums, rank) + 1
    now.replicas[i] = now.replicas[i] or {}
    table.insert(now.replicas[i], rank)
  end
  now.group = mesh:group(table.unpack(sums))
  current = now
  return setmetatable({}, { __close = function() current = outer end })
end

--- This rank's number among those that read different samples, from 0.
function data_ranks.rank() return current and current.rank or d.rank() end

--- How many there are of them.
function data_ranks.size() return current and current.size or d.size() end

--- The group of ranks over which gradients are summed; nil: all.
function data_ranks.group() return current and current.group end

--- How many ranks that group has, and this rank's number in it, from 0.
function data_ranks.replicas() return current and #current.replicas or d.size() end

function data_ranks.replica() return current and current.index or d.rank() end

--- Whether a replica has several ranks.
function data_ranks.is_shared() return current ~= nil and #current.replicas < d.size() end

--- Whether what this rank counts goes into sums over all ranks: of each replica one does.
function data_ranks.counts()
  if not current then return true end
  local replica = current.replicas[current.index + 1]
  return replica[#replica] == d.rank()
end

--- Of a list with a value of each rank, one for each replica: of its last rank for which `has` is
--- true of the value, else of the last.
function data_ranks.pick(list, has)
  if not current then return list end
  local picked = {}
  for i, replica in ipairs(current.replicas) do
    picked[i] = list[replica[#replica] + 1]
    for k = #replica, 1, -1 do
      local value = list[replica[k] + 1]
      if has(value) then
        picked[i] = value
        break
      end
    end
  end
  return picked
end

--- Of a list with a list of items of each rank, one list for each replica: of several items with
--- one id(item) that of the last rank. Notes in each item whose it is: `source`, a rank.
function data_ranks.union(lists, id)
  for i, items in ipairs(lists) do
    for _, item in ipairs(items) do item.source = i - 1 end
  end
  if not current then return lists end
  local unions = {}
  for i, replica in ipairs(current.replicas) do
    local union, place = {}, {}
    for _, rank in ipairs(replica) do
      for _, item in ipairs(lists[rank + 1]) do
        local key = id(item)
        place[key] = place[key] or #union + 1
        union[place[key]] = item
      end
    end
    unions[i] = union
  end
  return unions
end

return data_ranks
