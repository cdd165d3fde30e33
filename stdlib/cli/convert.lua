--- stdlib/cli/convert.lua: `ltrain convert FROM TO`: a sharded checkpoint as one file, and back.
local c = require "ltrain.c"
local contents = require "ltrain.files.checkpoint_contents"
local packing = require "ltrain.files.packing"
local parts = require "ltrain.core.parts"
local refuse = require "ltrain.cli.refuse"
local sharded_reader = require "ltrain.files.sharded_reader"
local sharded_writer = require "ltrain.files.sharded_writer"

local convert = {}

-- Tensors of the shapes and dtypes of those in a folder, without their bytes; names of one tensor
-- share one.
local function outlines(reader)
  local list, of = {}, {}
  for name, tensor in next, reader.tensors do
    of[tensor] = of[tensor] or c.empty({}, { dtype = tensor.dtype }):expand(tensor.shape)
    list[name] = of[tensor]
  end
  return list
end

-- Writes the tensors of a folder one after the other. Their checksums are joined from those of the
-- blocks; each block is checked when it is read.
local function to_file(path, target)
  local reader, message = sharded_reader.open(path)
  if not reader then return nil, message end
  local text, aliases = reader.text, reader.index.aliases
  local function whole(name)
    collectgarbage() -- the tensor before
    return parts.whole(reader.tensors[name])
  end
  local written, why = reader:try(function()
    text.sharded, text.crc = nil, {}
    for name, tensor in next, reader.tensors do
      if not aliases[name] then
        text.crc[name] = reader:crc32(tensor) or c.io.crc32(whole(name))
      end
    end
    local done
    done, message = c.io.stream_safetensors(target, outlines(reader), packing.sealed(text),
      aliases, whole)
    return done
  end)
  return written, why or message
end

-- The names among tensors that have no checksum, each with the one that has its bytes.
local function aliases_of(tensors, text)
  local aliases, first, sums = {}, {}, text.crc or tensors
  for name, tensor in next, tensors do
    if sums[name] then first[tensor] = name end
  end
  for name, tensor in next, tensors do
    if not sums[name] then aliases[name] = first[tensor] end
  end
  return aliases
end

-- The tensors of a file are mapped: what is written of them is in memory, and no more.
local function to_folder(path, target, ranks)
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors then return nil, metadata end
  if not metadata[packing.KEY] then return nil, path .. ": not a checkpoint of ltrain" end
  local text, message = packing.text(metadata, tensors, contents.wrong_format)
  if not text then return nil, ("%s: %s"):format(path, message) end
  local aliases = aliases_of(tensors, text)
  for alias in next, aliases do tensors[alias] = nil end
  return sharded_writer.write(target, tensors, text, aliases, ranks)
end

--- The word's main: returns the exit status.
function convert.main(word, parsed, host)
  local from, to, ranks = parsed.script, parsed.args[1], parsed.options.ranks
  if not from or not to or parsed.args[2] then
    return refuse(host, word, "needs two names: what is converted, and what it becomes")
  end
  local is_folder = c.io.kind(from) == "folder"
  if is_folder and ranks then
    return refuse(host, word, from .. " is in parts already: convert it to a file first")
  elseif not is_folder and not ranks then
    return refuse(host, word, from .. " is not a folder: --ranks N says into how many parts it is "
      .. "cut")
  end
  local ok, message = (is_folder and to_file or to_folder)(from, to, ranks)
  if ok then return 0 end
  host.complain(("ltrain: convert: %s\n"):format((message:gsub("^%l+: ", ""))))
  return 1
end

return convert
