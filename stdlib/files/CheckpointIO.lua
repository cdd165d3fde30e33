-- stdlib/files/CheckpointIO.lua: the base class for writing, reading and removing checkpoints.
--
-- Every strategy has one, which handles all checkpoints of the Trainer. The base class writes one
-- safetensors file per checkpoint, or with state_dict_type = "sharded" a folder with one a rank. A
-- custom one is a subclass or a plain table of save, load and remove, passed as
-- lt.strategies.DDP{checkpoint_io = ...}. Rank 0 saves (save_sharded: all ranks) and removes, every
-- rank loads.

local as_instance = require "ltrain.core.as_instance"
local c = require "ltrain.c"
local class = require "ltrain.core.class"

local process <const> = c.runtime.process

local CheckpointIO = class.extend(nil, "CheckpointIO")

CheckpointIO.extend = class.extend

function CheckpointIO:init() end

-- How files are written and read, loaded by the first of them.
local function checkpoint_file() return require "ltrain.files.checkpoint_file" end

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

--- Writes `checkpoint`, nested tables of tensors, numbers, strings and booleans. The tensors belong
--- to the run: clone them to keep them longer. Returns true, or nil and the reason.
function CheckpointIO:save(checkpoint, path)
  settle(path)
  return checkpoint_file().write(checkpoint, path)
end

--- Starts writing a checkpoint with tensors on a device asynchronously: returns an object with
--- `done()` and `wait()`, which returns the result of `save`. Returns nil if this is not possible:
--- then `save` is called, as for a class that overrides `save`.
function CheckpointIO:save_later(checkpoint, path)
  if self.save ~= CheckpointIO.save then return nil end
  settle(path)
  local saving = checkpoint_file().write_later(checkpoint, path, last_begun)
  on_their_way[path], last_begun = saving, saving or last_begun
  return saving
end

--- Called on all ranks with state_dict_type = "sharded": starts writing what this rank has of a
--- checkpoint, a table as for `save` with parts (core/parts.lua) in the place of tensors. Returns
--- an object with `done()`, `wait_own()`, which waits for this rank's file, `wait()`, which on rank
--- 0 returns when the checkpoint is complete, and `discard()`; nil and the reason if it cannot
--- begin. `ranks`: { rank =, size =, gather =, scatter = }.
function CheckpointIO:save_sharded(checkpoint, path, ranks)
  if self.save ~= CheckpointIO.save then
    return nil, "a CheckpointIO that overrides save must define save_sharded for state_dict_type = "
      .. "'sharded'"
  end
  settle(path)
  local saving, message = require "ltrain.files.sharded_writer".begin(checkpoint, path, ranks,
    last_begun)
  on_their_way[path], last_begun = saving, saving or last_begun
  return saving, message
end

--- Returns the table that was saved; nil and the reason if it cannot be read.
function CheckpointIO:load(path)
  settle(path)
  return checkpoint_file().read(path)
end

--- Removes the checkpoint at `path`.
function CheckpointIO:remove(path)
  settle(path)
  local is_link = c.io.follow(path) ~= path
  if c.io.kind(path) == "folder" and not is_link then return c.io.discard_folder(path) end
  return c.io.remove(path)
end

--- Makes `path` a symbolic link to the checkpoint at `target`, in its folder or below it. Returns
--- true, or nil and the reason. Not available for a class that overrides `save`.
function CheckpointIO:link(target, path)
  if self.save ~= CheckpointIO.save then
    return nil, "a CheckpointIO that overrides save cannot make links"
  end
  settle(target)
  local folder = path:match "^(.*/)[^/]*$" or ""
  if target:sub(1, #folder) ~= folder then
    return nil, ("%s is not in the folder of %s"):format(target, path)
  end
  return c.io.link(target:sub(#folder + 1), path)
end

--- Returns whether a checkpoint exists at `path`.
function CheckpointIO:exists(path)
  return coming(path) ~= nil or c.io.kind(path) ~= nil
end

-- The file that is locked while a name is taken, and nothing is saved under it yet.
local function lock_of(path)
  local folder, name = path:match "^(.*)/([^/]*)$"
  if not folder then folder, name = ".", path end
  return folder, ("%s/.%s.lock"):format(folder, name)
end

--- Reserves an unused path, so that no other process uses it. Returns a function that releases it,
--- to be called when the file exists; false if another process has reserved it; nil if paths cannot
--- be reserved (an overridden `save`, a folder that is not writable).
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

--- Converts a table of methods to an object; `where` is the prefix of error messages.
function CheckpointIO.adopt(value, where)
  return as_instance(value, CheckpointIO, where, { "save", "load", "remove" })
end

return CheckpointIO
