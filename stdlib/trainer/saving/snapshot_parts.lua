--- stdlib/trainer/saving/snapshot_parts.lua: snapshots of a state that the ranks share: each rank
--- has its part in a slot of its own.
--
-- A slot has all that its rank has, tensors that others have too: none needs another's bytes, save
-- the parts of tensors. Its text says which parts its tensors are. Where all slots are on this host
-- they are read in place, a range at a time; where they are on several, they are written out as a
-- sharded checkpoint (files/sharded_writer.lua), which any number of ranks can resume from.
local c = require "ltrain.c"
local contents = require "ltrain.files.checkpoint_contents"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local packing = require "ltrain.files.packing"
local parts = require "ltrain.core.parts"
local shard_plan = require "ltrain.files.shard_plan"
local sharded_writer = require "ltrain.files.sharded_writer"
local snapshot_slots = require "ltrain.trainer.saving.snapshot_slots"

local snapshot_parts = {}

--- What this rank's slot gets of `saved`: tensors by name, and the text.
function snapshot_parts.pack(saved)
  local tensors, text = contents.pack(saved)
  text.snapshot = { tensors = shard_plan.describe(tensors, contents.buffers(saved)),
    aliases = contents.aliases(saved, tensors) }
  for name, tensor in next, tensors do
    if parts.is(tensor) then tensors[name] = tensor.tensor end
  end
  return tensors, text
end

-- Reading.

-- The slot of this host with a part of the snapshot: its file, its tensors by name, its text, and
-- which parts these are.
local function open(slots, snapshot, part)
  local fd, header = slots:find(snapshot, part)
  local path, start = snapshot_slots.path(fd)
  local file, message = c.io.open_safetensors(path, start, header.bytes)
  if not file then errors.blame("snapshot: %s", message) end
  local text = c.io.json_decode(file:metadata()[packing.KEY])
  local of = text.snapshot
  text.snapshot = nil
  return { file = file, tensors = file:tensors(), text = text, described = of.tensors,
    aliases = of.aliases }
end

-- Elements from number `from` on of a tensor, of which the slot has at least these: so many, or as
-- many as a tensor has, which is filled.
local function read(slot, name, from, n)
  local piece, message = slot.file:read(slot.tensors[name].index,
    from - slot.described[name].from, n)
  if not piece then errors.blame("snapshot: %s", message) end
  return piece
end

-- A tensor whose parts are in the slots of this host.
local Stored <const> = {}
Stored.__index = Stored

function Stored:numel() return parts.numel(self.shape) end

--- Fills a contiguous tensor of the host with elements from number `from` on: what is restored
--- takes no memory twice.
function Stored:read_into(tensor, from)
  local n = tensor:numel()
  local flat <close> = tensor:detach():reshape { n }
  for _, cut in ipairs(self.cuts) do
    local first, count = parts.overlap(cut.from, cut.n, from, n)
    if count > 0 then
      local piece <close> = flat:narrow(1, first - from + 1, count)
      read(self.slots[cut.rank + 1], self.name, first, piece)
    end
  end
end

--- n elements from number `from` on, as [n].
function Stored:read(from, n)
  local out = c.empty({ n }, { dtype = self.dtype, device = "cpu" })
  self:read_into(out, from)
  return out
end

-- The descriptions of all parts, and their texts as one.
local function join(list)
  local described, text = {}, list[1].text
  for k, one in ipairs(list) do
    described[k] = one.described
    if k > 1 then parts.merge(text, one.text) end
  end
  return described, text
end

--- The checkpoint whose parts are all on this host; nil and what is wrong with it.
function snapshot_parts.read(slots, snapshot)
  local opened, tensors = {}, {}
  for part = 0, snapshot.parts - 1 do opened[part + 1] = open(slots, snapshot, part) end
  local described, text = join(opened)
  for name, of in next, shard_plan.make(described) do
    tensors[name] = setmetatable({ name = name, shape = of.shape, ndim = #of.shape,
      dtype = of.dtype, cuts = of.cuts, slots = opened }, Stored)
  end
  for alias, name in next, opened[1].aliases do tensors[alias] = tensors[name] end
  return contents.unpack(text, tensors)
end

-- Writing out.

-- What a slot has of a tensor, as sharded_writer reads it.
local Held <const> = {}
Held.__index = Held

function Held:read(from, n) return read(self.slot, self.name, from, n) end

-- Writes the files of the parts that this rank has opened; true, or nil and the reason.
local function write_files(opened, tasks)
  for part, slot in next, opened do
    local mine, tensors = tasks[part + 1], {}
    for name in next, slot.tensors do
      tensors[name] = setmetatable({ slot = slot, name = name }, Held)
    end
    local ok, message = sharded_writer.write_file(mine.folder, part, mine.id, tensors, mine.task)
    if not ok then return nil, message end
  end
  return true
end

-- The parts of all ranks in one list, of what each has sent.
local function in_order(all, count)
  local list = {}
  for _, sent in ipairs(all) do
    for _, one in ipairs(sent) do list[one.part + 1] = one end
  end
  return #list == count and list
end

local function write(slots, snapshot, path)
  local opened, sent, rank = {}, {}, dist.rank()
  for part = 0, snapshot.parts - 1 do
    if snapshot.holders[part + 1][1] == rank then
      local slot = open(slots, snapshot, part)
      opened[part] = slot
      sent[#sent + 1] = { part = part, text = slot.text, described = slot.described,
        aliases = slot.aliases }
    end
  end
  local all, tasks, text, why = dist.gather(sent), nil, nil, nil
  if rank == 0 then
    local list, of_ranks = in_order(all, snapshot.parts), {}
    local described
    described, text = join(list)
    for k, one in ipairs(described) do of_ranks[k] = { tensors = one } end
    tasks, why = sharded_writer.prepare(path, of_ranks, text, list[1].aliases)
  end
  local answer = dist.broadcast(rank == 0 and { tasks = tasks, why = why } or nil)
  if not answer.tasks then return nil, answer.why end
  local ok, message = write_files(opened, answer.tasks)
  for _, one in ipairs(dist.all_gather { ok = ok, message = message }) do
    if not one.ok then ok, message = nil, one.message end
  end
  if rank == 0 and ok then
    ok, message = sharded_writer.commit(answer.tasks[1].folder, path, text)
  elseif rank == 0 then
    c.io.discard_folder(answer.tasks[1].folder)
  end
  local result = dist.broadcast(rank == 0 and { ok, message } or false)
  return result[1], result[2]
end

--- Writes the snapshot as a sharded checkpoint at `path`, a folder that all hosts see. All ranks
--- call it; true, or nil and the reason.
function snapshot_parts.write(slots, snapshot, path)
  return exchange("snapshot", write, slots, snapshot, path)
end

return snapshot_parts
