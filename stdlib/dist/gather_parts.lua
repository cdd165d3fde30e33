--- stdlib/dist/gather_parts.lua: gathers a state in parts (core/parts.lua) as whole tensors on rank
--- 0, one tensor at a time.
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local errors = require "ltrain.core.errors"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"

-- Keys of what stands for a part in the message, and for a tensor of rank 0.
local NOTE <const>, HELD <const> = "\0part", "\0held"

-- The tree that is sent: notes in place of tensors and parts, which `own` has by name. In a note
-- each rank has its range, by its number; of a tensor that rank 0 has whole its note says so.
local function describe(value, name, own)
  local rank = c.dist.rank()
  if c.is_tensor(value) then
    if rank == 0 then return { [HELD] = true } end
    value = parts.of(value)
  end
  if parts.is(value) then
    own[name] = value.tensor
    return { [NOTE] = name, shape = value.shape, dtype = value.dtype,
      of = { [tostring(rank)] = { from = value.from, n = value.n } } }
  elseif type(value) ~= "table" or getmetatable(value) ~= nil then
    return value
  end
  local result = {}
  for key, field in next, value do
    result[key] = describe(field, name .. "\0" .. tostring(key), own)
  end
  return result
end

-- Calls fn(note) for each; the order is that of rank 0.
local function each_note(value, fn)
  if type(value) ~= "table" or value[HELD] then return end
  if value[NOTE] then return fn(value) end
  for _, field in tree.pairs(value) do each_note(field, fn) end
end

-- The ranks that send their ranges of a tensor: of those that have the same the first. The note is
-- left with their ranges.
local function senders_of(note)
  local senders, is_sent = {}, {}
  for rank, range in tree.pairs(note.of) do
    local key = range.from .. " " .. range.n
    if is_sent[key] then note.of[rank] = nil end
    senders[rank], is_sent[key] = not is_sent[key], true
  end
  return senders
end

-- `ranks`: by rank, a list that has its range.
local function join(note, ranks)
  local n, list, device = parts.numel(note.shape), {}, "cpu"
  for rank, range in tree.pairs(note.of) do
    range.tensor = ranks[math.tointeger(tonumber(rank)) + 1][1]
    if rank == "0" then device = range.tensor.device end
    list[#list + 1] = range
  end
  local missing = parts.missing(list, n)
  if missing then
    errors.blame("state: no rank has element %d of %s [%s]", missing, note[NOTE]:gsub("%z", "."),
      table.concat(note.shape, ", "))
  end
  local whole = c.empty({ n }, { dtype = note.dtype, device = device })
  for _, range in ipairs(list) do
    if range.n > 0 then whole:narrow(1, range.from + 1, range.n):copy_(range.tensor) end
  end
  return whole:reshape(note.shape)
end

-- Rank 0's tree with what the notes stand for, and its own tensors.
local function put_back(value, own, whole)
  if type(value) ~= "table" then return value end
  if value[HELD] then return own end
  if value[NOTE] then return whole[value[NOTE]] end
  local is_branch = type(own) == "table" and getmetatable(own) == nil
  for key, field in next, value do
    value[key] = put_back(field, is_branch and own[key], whole)
  end
  return value
end

--- Returns the whole state on rank 0, nil on the others. Where no part is, rank 0's values count.
--- All ranks call it.
return function(state)
  local own, notes = {}, {}
  local all = collectives.gather(describe(state, "", own))
  local merged = all and all[1]
  for r = 2, all and #all or 0 do parts.merge(merged, all[r]) end
  each_note(merged, function(note) notes[#notes + 1] = note end)
  local tasks = {}
  for i, note in ipairs(notes) do tasks[i] = { name = note[NOTE], senders = senders_of(note) } end
  local _ <close> = c.no_grad()
  local whole, rank = {}, tostring(c.dist.rank())
  for i, task in ipairs(collectives.broadcast(tasks)) do
    local all_ranks = collectives.gather { task.senders[rank] and own[task.name] or nil }
    if all_ranks then whole[task.name] = join(notes[i], all_ranks) end
  end
  return merged and put_back(merged, state, whole)
end
