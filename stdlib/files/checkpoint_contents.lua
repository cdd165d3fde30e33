-- stdlib/files/checkpoint_contents.lua: what a checkpoint holds, as tensors by name and one text.
--
-- Tensors: model.<path>, optim.<i>.<path>.<slot>, callback.<key>.<name>, metric.<key>.<state>,
-- strategy.<name>, grad.<path>, slice.<i>.grads.<path> and rank.<i>.gradients.<path> (in
-- mid-window). The rest is one text with format = 1; extra state of modules that is not a tensor is
-- there in `extra_state`, its tensors under extra.<path>. In place of a tensor there may be a part
-- of one (core/parts.lua).
local packing = require "ltrain.files.packing"
local parts = require "ltrain.core.parts"
local schema = require "ltrain.core.schema"
local tree = require "ltrain.core.tree"

local CHECKPOINT <const> = require "ltrain.files.checkpoint_schema"

local contents = {}

local FORMAT <const> = 1
local OF_FILE <const> = { crc = true, format = true, sealed = true, sharded = true }

-- Fields of a checkpoint that hold trees of state, and the prefix of their tensors.
local TREES <const> = {
  optimizer_states = "optim", callbacks = "callback", metrics = "metric", gradients = "grad",
  lr_schedulers = "scheduler", loops = "loop", loggers = "logger", data_module = "data",
  rank_gradients = "rank", slices = "slice", strategy = "strategy",
}

local function prefix_of(field) return TREES[field] or "user." .. field end

local function pack_optimizer(saved, index, tensors)
  local prefix, packed = ("optim.%d"):format(index - 1), {}
  for name, field in tree.pairs(saved) do
    local place = name == "state" and prefix or prefix .. "." .. name
    packed[name] = packing.pack(field, place, tensors)
  end
  return packed
end

-- Fields that say something of the tensors, and are not written themselves.
local OF_TENSORS <const> = { state_dict = true, aliases = true, buffer_names = true }

--- Tensors and parts by name, and the text that goes with them.
function contents.pack(saved)
  local tensors, text = {}, { format = FORMAT }
  for name, value in next, saved.state_dict do
    if packing.is_tensor(value) then
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
    elseif not OF_TENSORS[key] then
      text[key] = packing.pack(value, prefix_of(key), tensors)
    end
  end
  return tensors, text
end

--- The other names of tensors that are shared, each with the one that has its bytes.
function contents.aliases(saved, tensors)
  local names = {}
  for alias, first in pairs(saved.aliases or {}) do
    local name, stored = "model." .. alias, "model." .. first
    if tensors[stored] and not tensors[name] then names[name] = stored end
  end
  return names
end

--- The names of the module's buffers, a set: each rank may have others.
function contents.buffers(saved)
  local names = {}
  for name in next, saved.buffer_names or {} do
    names["model." .. name] = true
    names[prefix_of "current_model_state" .. "." .. name] = true
  end
  return names
end

--- What is wrong with the format of a text; nil: nothing.
function contents.wrong_format(text)
  if text.tree ~= nil then
    return "not a checkpoint: lt.save wrote it, and lt.load reads it"
  elseif text.format > FORMAT then
    return ("checkpoint format %d; this ltrain reads up to %d"):format(text.format, FORMAT)
  end
end

-- Fields whose tensors a strategy may read in parts.
local IN_PARTS <const> = { state_dict = true, optimizer_states = true, strategy = true,
  current_model_state = true }

--- The checkpoint as a table; nil and what is wrong with it. Tensors of a file that have not been
--- read stay so where a strategy may read a part of them.
function contents.unpack(text, tensors)
  local saved = { state_dict = {} }
  for name, tensor in pairs(tensors) do
    local path = name:match("^model%.(.*)$")
    if path then saved.state_dict[path] = tensor end
  end
  for key, value in tree.pairs(text) do
    if not OF_FILE[key] then
      saved[key] = packing.unpack(value, tensors)
      if not IN_PARTS[key] then saved[key] = parts.whole(saved[key]) end
    end
  end
  for name, value in next, type(saved.extra_state) == "table" and saved.extra_state or {} do
    saved.state_dict[name] = value
  end
  saved.extra_state = nil
  local wrong = schema.wrong(saved, CHECKPOINT)
  if wrong then return nil, "damaged: " .. wrong end
  return saved
end

return contents
