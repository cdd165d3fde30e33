-- stdlib/files/checkpoint_file.lua: a checkpoint as one safetensors file.
--
-- Tensors: model.<path>, optim.<i>.<path>.<slot>, callback.<key>.<name>, metric.<key>.<state>,
-- strategy.<name>, grad.<path>, slice.<i>.grads.<path> and rank.<i>.gradients.<path> (in
-- mid-window). The rest is one JSON text under the metadata key `ltrain`, with format = 1; extra
-- state of modules that is not a tensor is there in `extra_state`, its tensors under extra.<path>.
-- No code runs when a file is opened.
local c = require "ltrain.c"
local is_torch_name = require "ltrain.files.is_torch_name"
local packing = require "ltrain.files.packing"
local schema = require "ltrain.core.schema"
local tree = require "ltrain.core.tree"

local CHECKPOINT <const> = require "ltrain.files.checkpoint_schema"

local checkpoint_file = {}

local FORMAT <const> = 1
local OF_FILE <const> = { crc = true, format = true, sealed = true }

-- Fields of a checkpoint that hold trees of state, and the prefix of their tensors.
local TREES <const> = {
  optimizer_states = "optim", callbacks = "callback", metrics = "metric", gradients = "grad",
  lr_schedulers = "scheduler", loops = "loop", loggers = "logger", data_module = "data",
  rank_gradients = "rank", slices = "slice", strategy = "strategy",
}

local function pack_optimizer(saved, index, tensors)
  local prefix, packed = ("optim.%d"):format(index - 1), {}
  for name, held in tree.pairs(saved) do
    local place = name == "state" and prefix or prefix .. "." .. name
    packed[name] = packing.pack(held, place, tensors)
  end
  return packed
end

-- Tensors by name and the text that goes with them.
local function serialise(saved)
  local tensors, text = {}, { format = FORMAT }
  for name, value in next, saved.state_dict do
    if c.is_tensor(value) then
      tensors["model." .. name] = value
    else
      text.extra_state = text.extra_state or {}
      text.extra_state[name] = packing.pack(value, "extra." .. name, tensors)
    end
  end
  for key, value in tree.pairs(saved) do
    if key == "optimizer_states" then
      text[key] = {}
      for i, one in ipairs(value) do text[key][i] = pack_optimizer(one, i, tensors) end
    elseif key ~= "state_dict" and key ~= "aliases" then
      text[key] = packing.pack(value, TREES[key] or "user." .. key, tensors)
    end
  end
  return tensors, text
end

-- Adds the other names of shared tensors; returns them as a set. The writer puts them into the
-- metadata.
local function add_aliases(saved, tensors)
  local added = {}
  for alias, first in pairs(saved.aliases or {}) do
    local name = "model." .. alias
    if saved.state_dict[first] and not tensors[name] then
      tensors[name], added[name] = saved.state_dict[first], true
    end
  end
  return added
end

-- Makes the folder of a checkpoint; true, or nil and why there cannot be one of this name.
local function prepare(path)
  if is_torch_name(path) then
    return nil, ("%s: a name of PyTorch's files, and a checkpoint is none: name it .ckpt; "
      .. "lt.save(path, model:state_dict()) writes weights that torch.load reads"):format(path)
  end
  local folder = path:match("^(.*)/[^/]*$")
  if not folder or folder == "" then return true end
  return c.io.make_folder(folder)
end

--- Writes a checkpoint, with the folder that it is in. The former file of that name stays until
-- the new one is whole. Returns true, or nil and why it could not be written.
function checkpoint_file.write(saved, path)
  local tensors, text = serialise(saved)
  local metadata = packing.metadata(text, tensors)
  local aliases = add_aliases(saved, tensors)
  local made, why = prepare(path)
  if not made then return nil, why end
  local ok, message = c.io.save_safetensors(path, tensors, metadata, aliases)
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
-- what write does. Nil when there is nothing to wait for: no tensor is on a device; or when it
-- cannot begin, and why.
function checkpoint_file.write_later(saved, path, before)
  local tensors, text = serialise(saved)
  if not any_on_device(tensors) then return nil end
  local metadata, mark = packing.metadata_later(text)
  local aliases = add_aliases(saved, tensors)
  local made, why = prepare(path)
  if not made then return nil, why end
  local file, message = c.io.save_later(path, tensors, metadata, aliases, mark,
    before and before.file)
  return file and setmetatable({ file = file }, Saving), message
end

local function wrong_format(text)
  if text.tree ~= nil then
    return "not a checkpoint: lt.save wrote it, and lt.load reads it"
  elseif text.format > FORMAT then
    return ("checkpoint format %d; this ltrain reads up to %d"):format(text.format, FORMAT)
  end
end

local function deserialise(text, tensors)
  local saved = { state_dict = {} }
  for name, tensor in pairs(tensors) do
    local path = name:match("^model%.(.*)$")
    if path then saved.state_dict[path] = tensor end
  end
  for key, value in tree.pairs(text) do
    if not OF_FILE[key] then saved[key] = packing.unpack(value, tensors) end
  end
  for name, value in next, type(saved.extra_state) == "table" and saved.extra_state or {} do
    saved.state_dict[name] = value
  end
  saved.extra_state = nil
  return saved
end

--- The checkpoint in a file as a table, or nil and what is wrong with the file.
function checkpoint_file.read(path)
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors and require "ltrain.files.torch_file".is(path) then
    return nil, path .. ": not a checkpoint of ltrain: torch.save wrote it, lt.load reads it"
  elseif not tensors then
    return nil, metadata
  elseif not metadata[packing.KEY] then
    return nil, path .. ": not a checkpoint of ltrain: no text under 'ltrain'"
  end
  local text, message = packing.text(metadata, tensors, wrong_format)
  if not text then return nil, ("%s: %s"):format(path, message) end
  local saved = deserialise(text, tensors)
  local wrong = schema.wrong(saved, CHECKPOINT)
  if wrong then return nil, ("%s: damaged: %s"):format(path, wrong) end
  return saved
end

return checkpoint_file
