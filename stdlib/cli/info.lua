--- stdlib/cli/info.lua: `ltrain info`: what this build contains; what a file of tensors holds.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.files.checkpoint_file"
local errors = require "ltrain.core.errors"
local load = require "ltrain.files.load"
local packing = require "ltrain.files.packing"
local refuse = require "ltrain.cli.refuse"
local show = require "ltrain.prompt.show"
local torch_file = require "ltrain.files.torch_file"
local tree = require "ltrain.core.tree"

local info = {}

local function row(host, name, text)
  host.write(("%-12s %s\n"):format(name, text))
end

-- The devices of backends that the user has put into LTRAIN_BACKENDS, besides the parts `known`.
local function print_backends(host, known)
  local folder = c.runtime.getenv "LTRAIN_BACKENDS"
  for _, file in ipairs(folder and c.io.list_folder(folder) or {}) do
    local name = file:match "^ltrain_([%l%d_]+)%.so$"
    if name and not known[name] then
      local count, why = c.runtime.devices(name)
      if count then
        row(host, name, ("yes: %d device%s: %s"):format(count, count == 1 and "" or "s",
          c.runtime.device_name(name)))
      elseif not why:find "unknown device" then -- else it has collectives alone
        row(host, name, "no: " .. why:gsub("^" .. name .. ": ", ""))
      end
    end
  end
end

local function print_build(host)
  row(host, "ltrain", host.version)
  row(host, "lua", host.lua_version)
  local known = {}
  for _, part in ipairs(c.runtime.parts()) do
    row(host, part.name, (part.present and "yes: " or "no: ") .. part.text)
    known[part.name] = true
  end
  print_backends(host, known)
  row(host, "threads", ("%d an operation (--threads), %d cores online"):format(
    c.runtime.get_threads(), c.runtime.cpu_count()))
end

local function print_tensors(host, title, tensors)
  local count, first = 0, {}
  for name, tensor in tree.pairs(tensors) do
    if not first[tensor] then
      count, first[tensor] = count + tensor:numel(), name
    end
  end
  row(host, title, ("%d numbers"):format(count))
  for name, tensor in tree.pairs(tensors) do
    row(host, "", errors.printable(("%s [%s] %s%s"):format(name, table.concat(tensor.shape, ", "),
      tensor.dtype, first[tensor] ~= name and ", shared with " .. first[tensor] or "")))
  end
end

local function print_checkpoint(host, saved)
  row(host, "class", errors.printable(saved.class_name or "?"))
  row(host, "position", ("epoch %d, step %d"):format(saved.epoch, saved.global_step))
  row(host, "resumes", saved.loops and "yes" or "no: weights only")
  if saved.random and saved.random.seed then row(host, "seed", tostring(saved.random.seed)) end
  for name, value in tree.pairs(saved.hyper_parameters or {}) do
    if type(value) == "string" then value = errors.printable(value) end
    row(host, "hparams", ("%s = %s"):format(errors.printable(name), show.value(value)))
  end
  print_tensors(host, "weights", saved.state_dict)
end

local function print_plain(host, file)
  row(host, "file", file.by)
  for name, value in tree.pairs(file.metadata) do
    row(host, "metadata", errors.printable(("%s = %s"):format(name, value)))
  end
  print_tensors(host, "tensors", file.tensors)
end

-- Adds the tensors of nested tables, by their keys: { ["opt.state.0.step"] = tensor }.
local function add_tensors(list, value, name, done)
  if c.is_tensor(value) then
    list[name] = value
  elseif type(value) == "table" and not done[value] then
    done[value] = true
    for key, held in next, value do
      add_tensors(list, held, name == "" and tostring(key) or name .. "." .. key, done)
    end
  end
  return list
end

-- A file of tensors that is no checkpoint: {by =, tensors =, metadata =}; nil and what is wrong
-- with the file, nil alone for a checkpoint.
local function read_plain(path)
  if torch_file.is(path) then
    local value, message = load(path)
    if value == nil then return nil, message end
    return { by = "written by torch.save", tensors = add_tensors({}, value, "", {}), metadata = {} }
  end
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors then return nil, metadata end
  local text = metadata[packing.KEY]
  if not text then return { by = "safetensors", tensors = tensors, metadata = metadata } end
  local written = c.io.json_decode(text)
  if type(written) ~= "table" or written.tree == nil then return nil end
  local whole, message = load(path)
  if whole == nil then return nil, message end
  return { by = "written by lt.save", tensors = tensors, metadata = {} }
end

--- The word's main: returns the exit status.
function info.main(word, parsed, host)
  if not parsed.script then
    print_build(host)
    return 0
  end
  local file, message = read_plain(parsed.script)
  local saved
  if not file and not message then saved, message = checkpoint_file.read(parsed.script) end
  if message then return refuse(host, word, (message:gsub("^load: ", ""))) end
  if file then print_plain(host, file) else print_checkpoint(host, saved) end
  return 0
end

return info
