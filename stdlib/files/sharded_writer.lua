--- stdlib/files/sharded_writer.lua: writes a checkpoint as a folder (sharded_reader.lua): each rank
--- its parts, by a helper thread, while the run continues.
--
-- The ranks agree on who writes what in two messages, without the tensors: rank 0 gets names, sizes
-- and ranges, makes the folder under a temporary name and sends each rank its list. A tensor that
-- several ranks have whole is dealt out by bytes. A rank's file is renamed within the folder when
-- it is complete: that is how rank 0 learns of it. With all of them it writes the index and renames
-- the folder, so that at each moment the former checkpoint is there or the new one.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.files.checkpoint_file"
local contents = require "ltrain.files.checkpoint_contents"
local dtypes = require "ltrain.core.dtypes"
local packing = require "ltrain.files.packing"
local parts = require "ltrain.core.parts"
local shard_plan = require "ltrain.files.shard_plan"
local sharded_reader = require "ltrain.files.sharded_reader"

local sharded_writer = {}

local PATIENCE <const> = 2 -- seconds for the files of other ranks where a run has failed

-- A new id: the ranks' files of one save have the same.
local serial = 0
local function new_id(path)
  serial = serial + 1
  return c.runtime.sha256 { ("%s %d %.9f %d"):format(path, serial, c.runtime.clock(),
    c.runtime.pid()) }:sub(1, 16)
end

--- On the process that writes the index: makes the folder and adds the index to `text`, with what
--- it lacks of the texts in `all`, a list by rank of { tensors = as shard_plan describes them,
--- text = (optional) }. Returns what each rank is to know, { folder =, id =, task = }; nil and why
--- it cannot be saved. `aliases`: names, with those that have their bytes.
function sharded_writer.prepare(path, all, text, aliases)
  local made, folder, why
  made, why = checkpoint_file.prepare(path)
  if made then folder, why = c.io.begin_folder(path) end
  if not folder then return nil, (why:gsub("^save: ", "")) end
  local described = {}
  for r, one in ipairs(all) do
    described[r] = one.tensors
    parts.merge(text, one.text or {})
  end
  local found, id = shard_plan.make(described), new_id(folder)
  text.sharded = shard_plan.index(found, aliases, id, #all)
  local tasks = shard_plan.tasks(found, #all)
  for r, task in ipairs(tasks) do tasks[r] = { folder = folder, id = id, task = task } end
  return tasks
end

-- Writing.

local function file_of(folder, rank) return folder .. "/" .. sharded_reader.file_name(rank) end

--- The text of a rank's file, to which the checksums are added.
function sharded_writer.shard_text(id, rank)
  return { format = 1, shard = { id = id, rank = rank } }
end

-- Begins this rank's file; nil and the reason.
local function begin_file(tensors, mine, rank, before)
  local own = {}
  for _, one in ipairs(mine.task) do
    local tensor = tensors[one.name]
    local from = one.from
    if parts.is(tensor) then tensor, from = tensor.tensor, from - tensor.from end
    own[one.name] = parts.read(tensor, from, one.n)
  end
  local metadata, mark = packing.metadata_later(sharded_writer.shard_text(mine.id, rank))
  local path = file_of(mine.folder, rank)
  if c.io.kind(mine.folder) ~= "folder" then
    return nil, ("rank %d does not see %s, which rank 0 has made: the ranks need a folder that "
      .. "they share"):format(rank, mine.folder)
  end
  return c.io.save_later(path, own, metadata, {}, mark, before and before.file,
    sharded_reader.BLOCK)
end

--- Writes the index of a folder in which all ranks' files are, and gives it its name. Returns true,
--- or nil and the reason.
function sharded_writer.commit(folder, path, text)
  local index = text.sharded
  for rank = 0, index.ranks - 1 do
    local name = file_of(folder, rank)
    local file, message = c.io.open_safetensors(name)
    if not file then return nil, message end
    local _, bytes = c.io.read_head(name, 0)
    index.files[rank + 1] = { crc = file:metadata()["ltrain.crc32"], bytes = bytes }
    file:close()
  end
  local ok, message = c.io.save_safetensors(folder .. "/" .. sharded_reader.INDEX, {},
    packing.metadata(text, {}))
  if ok then ok, message = c.io.commit_folder(folder, path) end
  return ok, message
end

-- The checksums of the blocks of a row.
local function block_sums(tensor)
  local per, sums = sharded_reader.BLOCK // dtypes[tensor.dtype].size, {}
  for at = 0, tensor:numel() - 1, per do
    sums[#sums + 1] = c.io.crc32(tensor:narrow(1, at + 1, math.min(per, tensor:numel() - at)))
  end
  return sums
end

--- Writes the file of one of the ranks, of tensors that this process has; true, or nil and the
--- reason.
function sharded_writer.write_file(folder, rank, id, tensors, task)
  local own, text = {}, sharded_writer.shard_text(id, rank)
  text.crc, text.sealed = {}, true
  for _, one in ipairs(task) do
    own[one.name] = parts.read(tensors[one.name], one.from, one.n)
    text.crc[one.name] = block_sums(own[one.name])
  end
  return c.io.save_safetensors(file_of(folder, rank), own, packing.sealed(text))
end

--- Writes tensors and a text that this process has as a checkpoint of so many ranks. `aliases`:
--- names, with those that have their bytes. Returns true, or nil and the reason.
function sharded_writer.write(path, tensors, text, aliases, ranks)
  local folder, message = c.io.begin_folder(path)
  if not folder then return nil, message end
  local all, described = {}, shard_plan.describe(tensors)
  for r = 1, ranks do all[r] = described end
  local found, id = shard_plan.make(all), new_id(folder)
  text.sharded, text.crc = shard_plan.index(found, aliases, id, ranks), nil
  local ok = true
  for r, task in ipairs(shard_plan.tasks(found, ranks)) do
    if ok then ok, message = sharded_writer.write_file(folder, r - 1, id, tensors, task) end
  end
  if ok then ok, message = sharded_writer.commit(folder, path, text) end
  if not ok then c.io.discard_folder(folder) end
  return ok, message
end

-- A checkpoint on its way: the same answer however often it is asked for.
local Saving <const> = {}
Saving.__index = Saving

-- Whether the other ranks' files are there, at the latest within so many seconds.
local function is_complete(self, seconds)
  for rank = 0, self.text.sharded.ranks - 1 do
    if not c.io.wait_for(file_of(self.folder, rank), seconds) then return false end
  end
  return true
end

--- Whether wait() returns at once.
function Saving:done()
  return self.answer ~= nil or self.file:done() and (not self.text or is_complete(self, 0))
end

--- Waits for this rank's own file: true, or nil and the reason.
function Saving:wait_own()
  if self.own == nil then
    local ok, message = self.file:wait()
    self.own = { ok, message }
    self.file = nil -- and with it the tensors
  end
  return self.own[1], self.own[2]
end

local function finish(self, ok, message)
  if not ok and self.text then c.io.discard_folder(self.folder) end -- on rank 0
  self.answer = { ok, message and message:gsub("^save: ", "") or nil }
  return self.answer[1], self.answer[2]
end

--- Waits for this rank's file; on rank 0 for those of all ranks, and gives the folder its name.
--- Returns true, or nil and the reason.
function Saving:wait()
  if self.answer then return self.answer[1], self.answer[2] end
  local ok, message = self:wait_own()
  if not ok or not self.text then return finish(self, ok, message) end
  while not is_complete(self, 0.1) do end -- a rank that dies ends this one
  return finish(self, sharded_writer.commit(self.folder, self.path, self.text))
end

--- The same where the run has failed: ranks that are gone write nothing any more.
function Saving:wait_briefly()
  if self.answer then return self.answer[1], self.answer[2] end
  if self:wait_own() and self.text and not is_complete(self, PATIENCE) then
    return self:discard(("%s: not all ranks have written their files"):format(self.path))
  end
  return self:wait()
end

--- Gives it up. Returns nil and the reason.
function Saving:discard(why)
  self:wait_own()
  return finish(self, nil, why)
end

--- Begins to write what the ranks have of a checkpoint: an object with done() and wait(); nil and
--- the reason, on all ranks. `ranks`: { rank =, size =, gather =, scatter = }, collectives of those
--- that call it; `before`: the one that is written first, nil for none. The path is rank 0's.
function sharded_writer.begin(saved, path, ranks, before)
  local tensors, text = contents.pack(saved)
  local is_first = ranks.rank == 0
  local all = ranks.gather { tensors = shard_plan.describe(tensors, contents.buffers(saved)),
    text = not is_first and text or nil }
  local tasks, why
  if is_first then
    tasks, why = sharded_writer.prepare(path, all, text, contents.aliases(saved, tensors))
    if not tasks then
      tasks = {}
      for r = 1, ranks.size do tasks[r] = { refusal = why } end
    end
  end
  local mine = ranks.scatter(tasks)
  if mine.refusal then return nil, mine.refusal end
  local file, message = begin_file(tensors, mine, ranks.rank, before)
  if not file then return nil, message end
  return setmetatable({ file = file, folder = mine.folder, path = path,
    text = is_first and text or nil }, Saving)
end

return sharded_writer
