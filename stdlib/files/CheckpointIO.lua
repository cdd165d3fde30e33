-- stdlib/files/CheckpointIO.lua: the base class for writing, reading and removing checkpoints.
--
-- Every strategy has one, and all checkpoints of the Trainer go through it. The base writes one
-- safetensors file per checkpoint. Another one is a subclass or a plain table of save, load and
-- remove, passed as lt.strategies.DDP{checkpoint_io = ...}. Rank 0 saves and removes, every rank
-- loads.

local adopt = require "ltrain.core.adopt"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local checkpoint_file = require "ltrain.files.checkpoint_file"

local process <const> = c.runtime.process

local CheckpointIO = class.extend(nil, "CheckpointIO")

CheckpointIO.extend = class.extend

function CheckpointIO:init() end

-- Files that helper threads write, by path.
local on_their_way <const> = {}

-- The one that was begun last: the next is written after it, so that the newest file is the newest.
local last_begun

-- The one of a path that nobody has waited for yet.
local function coming(path)
  local saving = on_their_way[path]
  if saving and saving.answer then on_their_way[path] = nil end
  return on_their_way[path]
end

-- Waits for it. Whoever began it hears of its errors.
local function settle(path)
  local saving = coming(path)
  if saving then saving:wait() end
end

--- Writes `checkpoint`, nested tables of tensors, numbers, strings and booleans. The tensors are
--- those of the run: clone what is kept longer. Returns true, or nil and the reason.
function CheckpointIO:save(checkpoint, path)
  settle(path)
  return checkpoint_file.write(checkpoint, path)
end

--- Begins to write a checkpoint as it is now, of which some tensor is on a device: returns an
--- object with `done()` and `wait()`, which returns what `save` does. Nil where it cannot: then
--- `save` is called. A class with a `save` of its own has none.
function CheckpointIO:save_later(checkpoint, path)
  if self.save ~= CheckpointIO.save then return nil end
  settle(path)
  local saving = checkpoint_file.write_later(checkpoint, path, last_begun)
  on_their_way[path], last_begun = saving, saving or last_begun
  return saving
end

--- Returns the table that was saved; nil and the reason if it cannot be read.
function CheckpointIO:load(path)
  settle(path)
  return checkpoint_file.read(path)
end

--- Removes what was saved under `path`.
function CheckpointIO:remove(path)
  settle(path)
  return c.io.remove(path)
end

--- Makes `path` a symbolic link to what was saved under `target`, in its folder or below it.
--- Returns true, or nil and the reason. A class with a `save` of its own has no files to link.
function CheckpointIO:link(target, path)
  if self.save ~= CheckpointIO.save then
    return nil, "a CheckpointIO with a save of its own has no link"
  end
  settle(target)
  local folder = path:match "^(.*/)[^/]*$" or ""
  if target:sub(1, #folder) ~= folder then
    return nil, ("%s is not in the folder of %s"):format(target, path)
  end
  return c.io.link(target:sub(#folder + 1), path)
end

--- Returns whether something is saved under `path`.
function CheckpointIO:exists(path)
  return coming(path) ~= nil or c.io.kind(path) ~= nil
end

-- The file that is locked while a name is taken, and nothing is saved under it yet.
local function lock_of(path)
  local folder, name = path:match "^(.*)/([^/]*)$"
  if not folder then folder, name = ".", path end
  return folder, ("%s/.%s.lock"):format(folder, name)
end

--- Takes a path that nothing is saved under before something is, so that no other process takes it
--- too. Returns a function that ends this, to be called when the file is there; false where another
--- has it; nil where names cannot be taken (another `save`, a folder that cannot be written).
function CheckpointIO:claim(path)
  local folder, lock_path = lock_of(path)
  if self.save ~= CheckpointIO.save or not c.io.make_folder(folder) then return nil end
  local lock <const> = process.lock(lock_path)
  if not lock then return lock end
  local function release()
    local _ <close> = lock
    c.io.remove(lock_path)
  end
  if not self:exists(path) then return release end
  release()
  return false
end

--- Makes an object of a table of methods; `where` is the prefix of error messages.
function CheckpointIO.adopt(value, where)
  return adopt(value, CheckpointIO, where, { "save", "load", "remove" })
end

return CheckpointIO
