--- stdlib/files/sharded_reader.lua: reads a checkpoint that is a folder: a safetensors file a rank,
--- and an index.
--
-- The index, a safetensors file without tensors, has the text of a checkpoint (checkpoint_contents)
-- and in its field `sharded` the id of the save, the size and the checksum of each rank's file, and
-- of each tensor shape, dtype and cuts: { rank, from, n }, n elements from number `from` on are the
-- tensor of this name in the file of the rank. Files have checksums of blocks, so that a range can
-- be read, and checked, without the rest; the checksum of a file is that of its header, which has
-- those of the blocks. A tensor is read when somebody asks for it, and of it what is asked for.
local c = require "ltrain.c"
local contents = require "ltrain.files.checkpoint_contents"
local dtypes = require "ltrain.core.dtypes"
local errors = require "ltrain.core.errors"
local packing = require "ltrain.files.packing"
local parts = require "ltrain.core.parts"
local schema = require "ltrain.core.schema"
local tree = require "ltrain.core.tree"

local sharded_reader = {
  INDEX = "index.safetensors",
  BLOCK = 1 << 18, -- bytes of a checksum
  bytes_read = 0, -- of tensors, by this process
}

local SCHEMA <const> = { fields = {
  id = "string", aliases = { map = "string" },
  files = { list = { fields = { bytes = "count", crc = "string" } } },
  tensors = { map = { fields = { shape = { list = "count" }, dtype = { key_of = dtypes },
    cuts = { list = { list = "count" } } } } },
} }

--- The name of a rank's file, within the folder.
function sharded_reader.file_name(rank) return ("rank-%d.safetensors"):format(rank) end

--- Whether a path is that of a sharded checkpoint.
function sharded_reader.is(path)
  return c.io.kind(path .. "/" .. sharded_reader.INDEX) ~= nil
end

-- Tensors that have not been read.

local Stored <const> = {}
Stored.__index = Stored

--- n elements from number `from` on, as [n].
function Stored:read(from, n)
  local out = c.empty({ n }, { dtype = self.dtype })
  for _, cut in ipairs(self.cuts) do
    local first, count = parts.overlap(cut.from, cut.n, from, n)
    if count > 0 then
      local piece <close> = out:narrow(1, first - from + 1, count)
      self.reader:read(cut.rank, self, cut, first - cut.from, piece)
    end
  end
  return out
end

function Stored:numel() return parts.numel(self.shape) end

-- The files of a folder.

local Reader <const> = {}
Reader.__index = Reader

local function fail(self, rank, ...)
  errors.blame("%s/%s: %s", self.path, sharded_reader.file_name(rank), (...):format(select(2, ...)))
end

local function check_shard(self, rank, metadata)
  local text = c.io.json_decode(metadata[packing.KEY] or "null")
  local of = type(text) == "table" and text.shard
  if type(of) ~= "table" or type(text.crc) ~= "table" then
    fail(self, rank, "damaged: not a file of a sharded checkpoint")
  elseif of.id ~= self.index.id or of.rank ~= rank then
    fail(self, rank, "of another checkpoint, or another rank: its id is %s, rank %s; the index has "
      .. "%s, rank %d", errors.show(of.id), errors.show(of.rank), errors.show(self.index.id), rank)
  elseif metadata["ltrain.crc32"] ~= self.index.files[rank + 1].crc then
    fail(self, rank, "damaged: its header is not the one that was saved")
  end
  return text.crc
end

-- The open file of a rank.
local function shard_of(self, rank)
  local shard = self.shards[rank]
  if shard then return shard end
  local file, message = c.io.open_safetensors(self.path .. "/" .. sharded_reader.file_name(rank))
  if not file then errors.blame("%s", (message:gsub("^load: ", ""))) end
  shard = { file = file, sums = check_shard(self, rank, file:metadata()), tensors = file:tensors() }
  self.shards[rank] = shard
  return shard
end

--- Reads elements of a cut of a tensor into `out`; whole blocks are read and checked. Nothing else
--- is kept: a collector that comes later would leave most of a checkpoint in memory.
function Reader:read(rank, tensor, cut, from, out)
  local shard = shard_of(self, rank)
  local entry, sums = shard.tensors[tensor.name], shard.sums[tensor.name]
  if not entry or entry.dtype ~= tensor.dtype or parts.numel(entry.shape) ~= cut.n
    or type(sums) ~= "table" then
    fail(self, rank, "damaged: it does not have elements %d to %d of '%s'", cut.from,
      cut.from + cut.n - 1, tensor.name)
  end
  local size = dtypes[tensor.dtype].size
  local per = sharded_reader.BLOCK // size
  local n, first = out:numel(), from // per * per
  local stop = math.min((from + n + per - 1) // per * per, cut.n)
  local found, message = shard.file:read(entry.index, first, stop - first)
  if not found then errors.blame("%s", (message:gsub("^load: ", ""))) end
  local found <close> = found -- luacheck: ignore
  sharded_reader.bytes_read = sharded_reader.bytes_read + (stop - first) * size
  for at = first, stop - 1, per do
    local block <close> = found:narrow(1, at - first + 1, math.min(per, stop - at))
    if c.io.crc32(block) ~= sums[at // per + 1] then
      fail(self, rank, "damaged: the bytes of tensor '%s' have changed", tensor.name)
    end
  end
  local wanted <close> = found:narrow(1, from - first + 1, n)
  out:copy_(wanted)
end

--- Reads all of all files, a block at a time: raises when something is wrong.
function Reader:check()
  for rank = 0, #self.index.files - 1 do shard_of(self, rank) end
  for _, tensor in tree.pairs(self.tensors) do
    local per = sharded_reader.BLOCK // dtypes[tensor.dtype].size
    for at = 0, tensor:numel() - 1, per do
      local _ <close> = tensor:read(at, math.min(per, tensor:numel() - at))
    end
  end
end

--- Calls fn(...), which reads; returns its first result, or nil and what is wrong with a file.
function Reader:try(fn, ...)
  local ok, result = pcall(fn, ...)
  if ok then return result end
  local at = type(result) == "string" and result:find(self.path, 1, true)
  if not at then error(result, 0) end
  return nil, result:sub(at)
end

--- The CRC-32 of a whole tensor, by those of its blocks; nil where cuts overlap.
function Reader:crc32(tensor)
  local size, crc, at = dtypes[tensor.dtype].size, 0, 0
  for _, cut in ipairs(tensor.cuts) do
    if cut.from ~= at then return nil end
    local left = cut.n * size
    for _, sum in ipairs(shard_of(self, cut.rank).sums[tensor.name]) do
      local bytes = math.min(left, sharded_reader.BLOCK)
      crc, left = c.io.crc32_join(crc, sum, bytes), left - bytes
    end
    at = cut.from + cut.n
  end
  return crc
end

-- Opening.

local function stored(self, name, of)
  local cuts, n = {}, parts.numel(of.shape)
  for i, cut in ipairs(of.cuts) do
    cuts[i] = { rank = cut[1], from = cut[2], n = cut[3] }
    if #cut ~= 3 or cut[1] >= #self.index.files or cut[2] + cut[3] > n then return nil end
  end
  if parts.missing(cuts, n) then return nil end
  return setmetatable({ reader = self, name = name, shape = of.shape, ndim = #of.shape,
    dtype = of.dtype, cuts = cuts }, Stored)
end

-- Takes the index of a text: what is wrong with it, nil for nothing.
local function take_index(self, text)
  local wrong = contents.wrong_format(text)
  if not wrong and text.sharded == nil then wrong = "not the index of a checkpoint" end
  wrong = wrong or schema.wrong(text.sharded, SCHEMA, "sharded")
  if wrong then return wrong end
  self.index = text.sharded
  for name, of in next, self.index.tensors do
    self.tensors[name] = stored(self, name, of)
    if not self.tensors[name] then
      return ("damaged: the parts of tensor '%s' are not all of it"):format(name)
    end
  end
  for alias, name in next, self.index.aliases do self.tensors[alias] = self.tensors[name] end
end

-- What is wrong with the files by their names and sizes.
local function wrong_file(self)
  for i, file in ipairs(self.index.files) do
    local path = self.path .. "/" .. sharded_reader.file_name(i - 1)
    local head, size = c.io.read_head(path, 0)
    if not head then return (size:gsub("^load: ", "")) end
    if size ~= file.bytes then
      return ("%s: damaged: it has %d bytes of %d: is it cut off?"):format(path, size, file.bytes)
    end
  end
end

--- Opens a folder: an object with `tensors` by name, `text` and the metadata; nil and the reason.
function sharded_reader.open(path)
  local where = path .. "/" .. sharded_reader.INDEX
  if not sharded_reader.is(path) then
    return nil, ("%s: not a checkpoint: a folder without %s"):format(path, sharded_reader.INDEX)
  end
  local file, message = c.io.open_safetensors(where)
  if not file then return nil, message end
  local self = setmetatable({ path = path, shards = {}, tensors = {} }, Reader)
  local metadata = file:metadata()
  if not metadata[packing.KEY] then
    return nil, where .. ": not a checkpoint of ltrain: no text under 'ltrain'"
  end
  self.metadata = metadata
  self.text, message = packing.text(metadata, self.tensors, function(text)
    return take_index(self, text)
  end)
  if not self.text then return nil, ("%s: %s"):format(where, message) end
  message = wrong_file(self)
  if message then return nil, message end
  return self
end

--- The checkpoint in a folder as a table, of which the tensors that a strategy may have in parts
--- have not been read; nil and what is wrong with it.
function sharded_reader.checkpoint(path)
  local self, message = sharded_reader.open(path)
  if not self then return nil, message end
  local wrong
  local saved, why = self:try(function()
    local found
    found, wrong = contents.unpack(self.text, self.tensors)
    return found
  end)
  if not saved then return nil, why or ("%s: %s"):format(path, wrong) end
  return saved
end

--- All tensors of a folder by name, and the metadata of its index; nil and what is wrong.
function sharded_reader.load(path)
  local self, message = sharded_reader.open(path)
  if not self then return nil, message end
  local tensors, why = self:try(function() return parts.whole(self.tensors) end)
  if not tensors then return nil, why end
  return tensors, self.metadata
end

return sharded_reader
