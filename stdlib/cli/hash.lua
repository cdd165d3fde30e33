--- stdlib/cli/hash.lua: `ltrain hash FILE...`: a name for the weights in a file.
--
-- Two trainings that ended in the same bits print the same line, whenever, wherever and on however
-- many ranks they ran: what else a checkpoint holds (times, positions, folders) is left out.
local c = require "ltrain.c"
local hash_of = require "ltrain.core.hash"
local load = require "ltrain.files.load"
local packing = require "ltrain.files.packing"
local tree = require "ltrain.core.tree"

local hash = {}

-- The weights among a checkpoint's tensors. A tensor with several names counts once, under the
-- one that state_dict gives it: the others have no checksum.
local function weights(tensors, text)
  local state = {}
  for name, tensor in next, tensors do
    local path = name:match("^model%.(.*)$")
    local has_bytes = not text.crc or text.crc[name]
    if text.sharded then has_bytes = not text.sharded.aliases[name] end
    if path and has_bytes then state[path] = tensor end
  end
  return state
end

local function optimizers(tensors, text)
  local list = {}
  for i, packed in ipairs(text.optimizer_states or {}) do
    list[i] = {}
    for name, field in tree.pairs(packed) do list[i][name] = packing.unpack(field, tensors) end
  end
  return list
end

-- What counts of a file; nil and why it cannot be read.
local function read(path, all)
  local value, metadata = load(path, { metadata = true })
  if value == nil then return nil, metadata end
  local encoded = type(metadata) == "table" and metadata.ltrain
  if not encoded then return value end
  local text = c.io.json_decode(encoded)
  if not all then return weights(value, text) end
  return { model = weights(value, text), optimizers = optimizers(value, text) }
end

--- The word's main: returns the exit status.
function hash.main(_, parsed, host)
  if not parsed.script then
    host.complain("ltrain: hash: which file? (a checkpoint, or any safetensors file)\n")
    return 2
  end
  local status = 0
  for _, path in ipairs { parsed.script, table.unpack(parsed.args) } do
    local value, message = read(path, parsed.options.all)
    if value == nil then
      host.complain(("ltrain: hash: %s\n"):format((message:gsub("^load: ", ""))))
      status = 1
    else
      host.write(("%s  %s\n"):format(hash_of(value), path))
    end
  end
  return status
end

return hash
