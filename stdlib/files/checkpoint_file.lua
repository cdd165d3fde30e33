-- stdlib/files/checkpoint_file.lua: a checkpoint as one safetensors file: the tensors, and the text
-- under the metadata key `ltrain` (checkpoint_contents.lua). No code runs when a file is opened.
local c = require "ltrain.c"
local contents = require "ltrain.files.checkpoint_contents"
local is_torch_name = require "ltrain.files.is_torch_name"
local packing = require "ltrain.files.packing"
local sharded_reader = require "ltrain.files.sharded_reader"

local checkpoint_file = {}

-- Adds the other names of shared tensors; returns them as a set. The writer puts them into the
-- metadata.
local function add_aliases(saved, tensors)
  local added = {}
  for alias, first in pairs(contents.aliases(saved, tensors)) do
    tensors[alias], added[alias] = tensors[first], true
  end
  return added
end

--- Makes the folder of a checkpoint; true, or nil and why there cannot be one of this name.
function checkpoint_file.prepare(path)
  if is_torch_name(path) then
    return nil, ("%s: a name of PyTorch's files, and a checkpoint is none: name it .ckpt; "
      .. "lt.save(path, model:state_dict()) writes weights that torch.load reads"):format(path)
  end
  local folder = path:match("^(.*)/[^/]*$")
  if not folder or folder == "" then return true end
  return c.io.make_folder(folder)
end

-- Writes the file in place of a folder of ranks' files, which a rename cannot replace.
local function replace_folder(path, ...)
  local folder, why = c.io.begin_folder(path)
  if not folder then return nil, why end
  local file = folder .. "/" .. path:match "[^/]*$"
  local ok, message = c.io.save_safetensors(file, ...)
  if ok then ok, message = c.io.commit_folder(file, path) end
  c.io.discard_folder(folder)
  return ok, message
end

--- Writes a checkpoint, with the folder that it is in. The former file of that name stays until
-- the new one is whole. Returns true, or nil and why it could not be written.
function checkpoint_file.write(saved, path)
  local tensors, text = contents.pack(saved)
  local metadata = packing.metadata(text, tensors)
  local aliases = add_aliases(saved, tensors)
  local made, why = checkpoint_file.prepare(path)
  if not made then return nil, why end
  local write = sharded_reader.is(path) and replace_folder or c.io.save_safetensors
  local ok, message = write(path, tensors, metadata, aliases)
  if not ok then return nil, (message:gsub("^save: ", "")) end
  return true
end

local function any_on_device(tensors)
  for _, tensor in next, tensors do
    if tensor.device ~= "cpu" then return true end
  end
  return false
end

-- A file on its way: the same answer however often it is asked for.
local Saving <const> = {}
Saving.__index = Saving

function Saving:done() return self.answer ~= nil or self.file:done() end

function Saving:wait()
  if not self.answer then
    local ok, message = self.file:wait()
    self.answer = { ok, message and message:gsub("^save: ", "") or nil }
    self.file = nil -- and with it the tensors
  end
  return self.answer[1], self.answer[2]
end

--- The same by a helper thread, of the tensors as they are now, when the one that this function
-- returned before is written (`before`, nil: none): an object with done() and wait(), which returns
-- what write does. Nil when there is nothing to wait for: no tensor is on a device; when a folder
-- has the name; or when it cannot begin, and why.
function checkpoint_file.write_later(saved, path, before)
  local tensors, text = contents.pack(saved)
  if not any_on_device(tensors) or sharded_reader.is(path) then return nil end
  local metadata, mark = packing.metadata_later(text)
  local aliases = add_aliases(saved, tensors)
  local made, why = checkpoint_file.prepare(path)
  if not made then return nil, why end
  local file, message = c.io.save_later(path, tensors, metadata, aliases, mark,
    before and before.file)
  return file and setmetatable({ file = file }, Saving), message
end

--- The checkpoint in a file, or in a folder of ranks' files (sharded_reader.lua), as a table; nil
--- and what is wrong with it.
function checkpoint_file.read(path)
  if c.io.kind(path) == "folder" then return sharded_reader.checkpoint(path) end
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors and require "ltrain.files.torch_file".is(path) then
    return nil, path .. ": not a checkpoint of ltrain: torch.save wrote it, lt.load reads it"
  elseif not tensors then
    return nil, metadata
  elseif not metadata[packing.KEY] then
    return nil, path .. ": not a checkpoint of ltrain: no text under 'ltrain'"
  end
  local text, message = packing.text(metadata, tensors, contents.wrong_format)
  local saved
  if text then saved, message = contents.unpack(text, tensors) end
  if not saved then return nil, ("%s: %s"):format(path, message) end
  return saved
end

return checkpoint_file
