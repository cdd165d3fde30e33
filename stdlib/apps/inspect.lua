--- stdlib/apps/inspect.lua: `ltrain inspect FILE`: what a file or the folder of a run contains.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.files.checkpoint_file"
local csv = require "ltrain.files.csv"
local errors = require "ltrain.core.errors"
local image = require "ltrain.image"
local load = require "ltrain.files.load"
local memory = require "ltrain.apps.prompt.memory"
local numpy = require "ltrain.files.numpy"
local packing = require "ltrain.files.packing"
local parts = require "ltrain.core.parts"
local refuse = require "ltrain.cli.refuse"
local runs = require "ltrain.runs"
local sharded_reader = require "ltrain.files.sharded_reader"
local tokenizer = require "ltrain.text.load_tokenizer"
local torch_file = require "ltrain.files.torch_file"
local tree = require "ltrain.core.tree"
local value_text = require "ltrain.apps.prompt.value_text"

local inspect = {}

-- What begins the messages of readers.
local READERS <const> = { load = true, read = true, read_idx = true, ["csv.read"] = true,
  ["image.read"] = true, ["numpy.load"] = true, ["runs.read"] = true, ["text.tokenizer"] = true }

local HEAD <const>, MOST_HEAD <const> = 16, 64 -- bytes that tell a format; that are shown
local PART <const> = 4 << 20 -- bytes of a csv file that are read
local PARSED <const> = 64 << 20 -- of a JSON file

local function row(host, name, text)
  host.write(("%-12s %s\n"):format(name, errors.printable(text)))
end

local function print_tensors(host, title, tensors)
  local count, first = 0, {}
  for name, tensor in tree.pairs(tensors) do
    if parts.is_tensor(tensor) and not first[tensor] then
      count, first[tensor] = count + tensor:numel(), name
    end
  end
  row(host, title, ("%d numbers"):format(count))
  for name, tensor in tree.pairs(tensors) do
    if parts.is_tensor(tensor) then
      row(host, "", ("%s [%s] %s%s"):format(name, table.concat(tensor.shape, ", "), tensor.dtype,
        first[tensor] ~= name and ", shared with " .. first[tensor] or ""))
    else
      row(host, "", ("%s %s"):format(name, errors.show(tensor)))
    end
  end
end

local function one_line(value)
  return type(value) == "string" and value or (value_text.value(value):gsub("\n%s*", " "))
end

local function print_checkpoint(host, saved)
  row(host, "class", saved.class_name or "?")
  row(host, "position", ("epoch %d, step %d"):format(saved.epoch, saved.global_step))
  row(host, "resumes", saved.loops and "yes" or "no: weights only")
  if saved.random and saved.random.seed then row(host, "seed", tostring(saved.random.seed)) end
  for _, key in ipairs { "hyper_parameters", "data_module_hyper_parameters" } do
    for name, value in tree.pairs(saved[key] or {}) do
      row(host, "hparams", ("%s = %s"):format(name, one_line(value)))
    end
  end
  print_tensors(host, "weights", saved.state_dict)
end

local function print_plain(host, by, tensors, metadata)
  row(host, "file", by)
  for name, value in tree.pairs(metadata or {}) do
    row(host, "metadata", ("%s = %s"):format(name, value))
  end
  print_tensors(host, "tensors", tensors)
end

-- Adds the tensors of nested tables, by their keys: { ["opt.state.0.step"] = tensor }.
local function add_tensors(list, value, name, done)
  if c.is_tensor(value) then
    list[name] = value
  elseif type(value) == "table" and not done[value] then
    done[value] = true
    for key, field in next, value do
      add_tensors(list, field, name == "" and tostring(key) or name .. "." .. key, done)
    end
  end
  return list
end

-- Each reader prints what it has and returns true; nil and what is wrong with the file.

local function read_torch(host, path)
  local value, message = torch_file.load(path, nil, true)
  if value == nil then return nil, message end
  print_plain(host, "written by torch.save", add_tensors({}, value, "", {}))
  return true
end

local function read_safetensors(host, path)
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors then return nil, metadata end
  local text = metadata[packing.KEY]
  local written = text and c.io.json_decode(text)
  if not text then
    print_plain(host, "safetensors", tensors, metadata)
  elseif type(written) == "table" and written.tree ~= nil then
    local whole, message = load(path)
    if whole == nil then return nil, message end
    print_plain(host, "written by lt.save", tensors)
  else
    local saved, message = checkpoint_file.read(path)
    if not saved then return nil, message end
    print_checkpoint(host, saved)
  end
  return true
end

-- Arrays of a .npz file by their headers: the rest may be large, and packed.
local function read_npz(host, path)
  local zip <close>, message = c.io.open_zip(path, true)
  if not zip then return nil, message end
  local count, lines = 0, {}
  for _, member in ipairs(zip:names()) do
    local dtype, sizes = zip:layout(member)
    if not dtype then return nil, ("%s (in %s)"):format(sizes, errors.show(member)) end
    local n = 1
    for _, size in ipairs(sizes) do n = n * size end
    count = count + n
    lines[#lines + 1] = ("%s [%s] %s"):format(member:match "^(.*)%.npy$" or member,
      table.concat(sizes, ", "), dtype)
  end
  row(host, "file", "NumPy arrays (npz)")
  row(host, "tensors", ("%d numbers"):format(count))
  for _, line in ipairs(lines) do row(host, "", line) end
  return true
end

local function read_numpy(host, path)
  local value, message = numpy.load(path)
  if value == nil then return nil, message end
  print_plain(host, "NumPy array (npy)", { array = value })
  return true
end

local function read_idx(host, path)
  local tensor, message = c.io.read_idx(path)
  if not tensor then return nil, message end
  print_plain(host, "IDX (the format of MNIST)", { array = tensor })
  return true
end

local function read_image(host, path)
  local picture, message = image.read(path, { mode = "as_is" })
  if not picture then return nil, message end
  print_plain(host, "image [channels, height, width]", { pixels = picture })
  return true
end

local function read_csv(host, path)
  local read, bytes, of = csv.read(path, { bytes = PART })
  if not read then return nil, bytes end
  local is_part = bytes < of
  row(host, "file", is_part and ("csv of about %.2g rows, by the first %d (%s of %s)"):format(
    #read * of / bytes, #read, memory.size(bytes), memory.size(of))
    or ("csv of %d rows"):format(#read))
  for _, name in ipairs(read.names) do row(host, "", name) end
  return true
end

local function read_json(host, path)
  local head, size = c.io.read_head(path, MOST_HEAD)
  if head and size > PARSED then
    row(host, "file", ("JSON of %s: too large to be listed"):format(memory.size(size)))
    row(host, "begins", head)
    return true
  end
  local text, message = c.io.read_file(path)
  if not text then return nil, message end
  local value, wrong = c.io.json_decode(text, { plain = true })
  if value == nil then
    return nil, ("%s: %s"):format(path, wrong and wrong:gsub("^json: ", "") or "null")
  end
  if type(value) == "table" and type(value.model) == "table" and value.model.vocab then
    local found, why = tokenizer(path)
    if not found then return nil, why end
    row(host, "file", "tokenizer (Hugging Face's tokenizer.json)")
    row(host, "model", tostring(value.model.type or "BPE"))
    row(host, "vocabulary", ("%d tokens"):format(found.vocab_size))
    for _, token in ipairs(value.added_tokens or {}) do
      row(host, "", ("%s = %s"):format(token.content, token.id))
    end
    return true
  end
  row(host, "file", "JSON")
  for name, field in tree.pairs(type(value) == "table" and value or { value }) do
    row(host, "", ("%s = %s"):format(name, one_line(field)))
  end
  return true
end

local function read_text(_, path)
  return nil, path .. " is a text, which no reader takes: neither JSON nor csv by its name"
end

local function read_nothing(_, path) return nil, path .. " is empty" end

local function read_unknown(_, path)
  return nil, path .. " is of no kind that is known here: neither by its first bytes nor by its "
    .. "name"
end

local function read_run(host, path)
  local run, message = runs.read(path)
  if not run then return nil, message end
  local is_said = run.error and run.error:find("^" .. run.status)
  row(host, "run", is_said and run.error or run.status .. (run.error and ": " .. run.error or ""))
  if run.seconds then row(host, "time", ("%.0f s"):format(run.seconds)) end
  for name, value in tree.pairs(run.hparams or {}) do
    row(host, "hparams", ("%s = %s"):format(name, one_line(value)))
  end
  for _, name in ipairs(run.names) do
    local best, step = runs.best(run, name)
    row(host, "metric", ("%s: last %.6g%s"):format(name, runs.last(run, name),
      best and (", best %.6g (step %d)"):format(best, step) or ""))
  end
  for _, file in ipairs(c.io.list_folder(path .. "/checkpoints") or {}) do
    row(host, "checkpoint", "checkpoints/" .. file)
  end
  return true
end

local function read_sharded(host, path)
  local saved, message = checkpoint_file.read(path)
  if not saved then return nil, message end
  local reader = assert(sharded_reader.open(path))
  local _, wrong = reader:try(reader.check, reader)
  if wrong then return nil, wrong end
  row(host, "file", ("checkpoint in parts of %d rank%s"):format(#reader.index.files,
    #reader.index.files == 1 and "" or "s"))
  for i, file in ipairs(reader.index.files) do
    row(host, "", ("%s: %d bytes"):format(sharded_reader.file_name(i - 1), file.bytes))
  end
  print_checkpoint(host, saved)
  return true
end

local function read_folder(host, path)
  if sharded_reader.is(path) then return read_sharded(host, path) end
  if runs.is_run(path) then return read_run(host, path) end
  local found = runs.find(path)
  if found and #found > 0 then
    row(host, "folder", ("%d run%s"):format(#found, #found == 1 and "" or "s"))
    for _, one in ipairs(found) do
      local run, message = runs.read(one)
      row(host, "", ("%s: %s"):format(one, run and run.status or message))
    end
    return true
  end
  local read, message = tokenizer(path)
  if not read then return nil, ("%s: no run, and no tokenizer (%s)"):format(path, message) end
  row(host, "folder", "tokenizer")
  row(host, "vocabulary", ("%d tokens"):format(read.vocab_size))
  return true
end

local function is_idx(head)
  return head:find "^\0\0[\x08\x09\x0b-\x0e][\1-\4]" ~= nil
end

-- Which reader a file asks for, by its first bytes, or else by its name.
local function reader_of(path, head)
  if head:find "^\x93NUMPY" then return read_numpy end
  if path:find "%.npz$" then return read_npz end
  if head:find "^\x89PNG" or head:find "^\xff\xd8\xff" then return read_image end
  if head:find "^RIFF....WEBP" or head:find "^BM" and path:find "%.bmp$" then return read_image end
  local is_torch, message = torch_file.is(path)
  if is_torch or message then return read_torch end
  if is_idx(head) or path:find "%-ubyte%.gz$" then return read_idx end
  if path:find "%.json$" then return read_json end
  if path:find "%.csv$" then return read_csv end
  if head == "" and not path:find "%.csv$" and not path:find "%.json$" then return read_nothing end
  if path:find "%.safetensors$" or path:find "%.ckpt$" then return read_safetensors end
  if #head > 8 and head:sub(9, 9) == "{" then return read_safetensors end
  if head ~= "" and not head:find "[\0-\8\14-\31\127]" and not head:find "[\xf8-\xff]" then
    return read_text
  end
  return read_unknown
end

--- The word's main: returns the exit status.
function inspect.main(word, parsed, host)
  local path = parsed.script
  if not path then
    return refuse(host, word, "which file? (a checkpoint, safetensors, npy, npz, IDX, image, csv, "
      .. "tokenizer.json, or the folder of a run)")
  end
  local done, message
  if c.io.kind(path) == "folder" then
    done, message = read_folder(host, path)
  else
    local head, why = c.io.read_head(path, HEAD)
    if not head then
      message = why
    else
      done, message = reader_of(path, head)(host, path)
    end
  end
  if done then return 0 end
  local who, said = message:match "^([%l_.]+): (.*)$"
  return refuse(host, word, READERS[who] and said or message)
end

return inspect
