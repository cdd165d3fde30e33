-- spec/fuzz/structures.lua: files whose form is right and whose fields are not: .pt, .npz, .ckpt,
-- tokenizer.json, folders of runs.
--
--   LT_SANITIZE=address,undefined ./dev fuzz structures [RUNS] [SEED]
--
-- Fields of zip records (sizes, places, methods, counts) get other values; nodes of JSON texts are
-- replaced, doubled under the same key, or nested deeply; checksums are made right again, so that
-- what is behind them is reached. A run ends well when nothing crashes, none takes over ten seconds
-- or 600 MB, and all that is refused is refused by a sentence that comes from no line of ours.
local c = require "ltrain.c"
local lt = require "ltrain"
local runs = require "ltrain.runs"
local proc_sizes = require "ltrain.core.proc_sizes"

local RUNS <const>, SEED <const> = tonumber(arg[1] or 20000), tonumber(arg[2] or 1)
local random <const>, clock <const> = math.random, os.clock -- the time of the processor
local INTERNAL <const> = "ltrain%.[%w_.]+:%d+:"

local NAME <const> = ("/ltrain_fuzz.%d/"):format(random(1 << 40))
local FOLDER <const> = (c.io.make_folder("/dev/shm" .. NAME) and "/dev/shm" or "/tmp") .. NAME
assert(c.io.make_folder(FOLDER .. "run/media"))
local PATH <const>, RUN <const> = FOLDER .. "file", FOLDER .. "run"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function made(save, ...)
  assert(save(PATH, ...) ~= false)
  return read(PATH)
end

-- Trees of JSON as texts: a field's text is replaced, so that also what no encoder writes is there.

local ODD <const> = { "null", "true", "-1", "0", "0.5", "1e999", "-1e308", "9223372036854775807",
  "9223372036854775808", "4294967296", '""', '"x"', '"../../x"', '"\\u001b[31m"', "[]", "{}",
  "[null]", "[null,1]", '{"a":{"b":[]}}', "[[[[]]]]", '"\xff"' }

-- Where values of a text begin and end.
local function values_of(text)
  local places, open, at = {}, {}, 1
  while true do
    local first <const> = text:find('[%[{%]}"%dtfn-]', at)
    if not first then return places end
    local byte <const>, last = text:sub(first, first), first
    if byte == "[" or byte == "{" then
      open[#open + 1] = first
    elseif byte == "]" or byte == "}" then
      places[#places + 1] = { table.remove(open) or first, first }
    elseif byte == '"' then
      repeat
        last = text:find('[\\"]', last + 1) or #text
        local is_escape <const> = text:sub(last, last) == "\\"
        if is_escape then last = last + 1 end
      until not is_escape or last >= #text
      places[#places + 1] = { first, last }
    else
      last = select(2, text:find("^[%w+%-.]+", first))
      places[#places + 1] = { first, last }
    end
    at = last + 1
  end
end

local function deep()
  local n <const> = ({ 50, 500, 100000 })[random(3)]
  return ("["):rep(n) .. ("]"):rep(n)
end

local function change_json(text)
  for _ = 1, random(0, 3) do
    local places <const> = values_of(text)
    local place <const> = places[random(math.max(#places, 1))]
    if not place then return text end
    local before, value = text:sub(1, place[1] - 1), text:sub(place[1], place[2])
    local after, how = text:sub(place[2] + 1), random(20)
    if how == 1 then
      value = deep()
    elseif how <= 4 then -- twice under one key, or twice in a list
      local key = before:match '("[^"]*":)$' or ""
      value = value .. "," .. key .. ODD[random(#ODD)]
    elseif how == 5 then
      local other <const> = places[random(#places)]
      value = text:sub(other[1], other[2])
    else
      value = ODD[random(#ODD)]
    end
    text = before .. value .. after
    if #text > 1 << 20 then return text end
  end
  return text
end

-- Records of zip files: { mark, { place, bytes } of each field }.
local RECORDS <const> = {
  { "PK\1\2", { { 8, 2 }, { 10, 2 }, { 16, 4 }, { 20, 4 }, { 24, 4 }, { 28, 2 }, { 30, 2 },
    { 32, 2 }, { 42, 4 } } },
  { "PK\3\4", { { 8, 2 }, { 14, 4 }, { 18, 4 }, { 22, 4 }, { 26, 2 }, { 28, 2 } } },
  { "PK\5\6", { { 8, 2 }, { 10, 2 }, { 12, 4 }, { 16, 4 }, { 20, 2 } } },
  { "PK\6\6", { { 24, 8 }, { 32, 8 }, { 40, 8 }, { 48, 8 } } },
}

local function number(old, bytes)
  local most <const> = bytes == 8 and -1 or (1 << 8 * bytes) - 1
  local list <const> = { 0, 1, 8, most, most >> 1, old + 1, old - 1, old * 2, old * 1000,
    random(0, 255) }
  return list[random(#list)] & most
end

local function change_zip(bytes)
  for _ = 1, random(0, 3) do
    local record <const> = RECORDS[random(#RECORDS)]
    local places, at = {}, 1
    while true do
      at = bytes:find(record[1], at, true)
      if not at then break end
      places[#places + 1], at = at, at + 4
    end
    local place <const> = places[random(math.max(#places, 1))]
    local field <const> = record[2][random(#record[2])]
    if place and place + field[1] + field[2] - 1 <= #bytes then
      local form <const>, from <const> = "<I" .. field[2], place + field[1]
      local value <const> = number(form:unpack(bytes, from), field[2])
      bytes = bytes:sub(1, from - 1) .. form:pack(value) .. bytes:sub(from + field[2])
    end
  end
  return bytes
end

-- A checkpoint whose text is changed and whose checksums are right.
local CKPT <const> = (function()
  local net = lt.nn.Linear(2, 1)
  function net:training_step(batch) return self(batch):mean() end
  function net:configure_optimizers()
    local optimizer = lt.optim.AdamW(self:parameters(), { lr = 0.1 })
    return { optimizer = optimizer, lr_scheduler = lt.optim.StepLR(optimizer, 1) }
  end
  local trainer = lt.Trainer { max_epochs = 1, logger = false, enable_progress_bar = false,
    enable_model_summary = false, enable_checkpointing = false }
  trainer:fit(net, { lt.ones(1, 2) })
  trainer:save_checkpoint(PATH)
  return { c.io.load_safetensors(PATH) }
end)()

local function write_checkpoint()
  local tensors <const>, metadata <const> = CKPT[1], CKPT[2]
  c.io.save_safetensors(PATH, tensors, { ltrain = change_json(metadata.ltrain):gsub("\xff", "?"),
    ["ltrain.crc32"] = "00000000" }, {})
  if random(3) > 1 then return end
  local bytes <const> = read(PATH) -- the header that says where tensors lie
  local size <const> = ("<I8"):unpack(bytes)
  local head <const> = change_json(bytes:sub(9, 8 + size))
  write(PATH, ("<I8"):pack(random(5) == 1 and number(#head, 4) or #head) .. head
    .. bytes:sub(9 + size))
end

local OF_RUN <const> = {
  ["run.json"] = '{"format":1,"status":"finished","started":1,"ended":2,"command":["a","b"],'
    .. '"loops":[{"loop":"fit","status":"finished"}],"process":{"host":"x","pid":1,"ticks":2},'
    .. '"devices":["cpu"],"best_checkpoint":"a.ckpt","epoch":1,"step":2}\n',
  ["hparams.json"] = '{"lr":0.1,"net":{"width":8,"names":["a","b"]}}\n',
  ["media/index.jsonl"] = '{"kind":"image","name":"a","step":1,"files":["a.png"]}\n'
    .. '{"kind":"histogram","name":"h","step":1,"edges":[0,1],"counts":[3]}\n',
  ["metrics.csv"] = 'epoch,step,loss,"a,b"\n0,0,1,\n0,1,2,nan\n',
}

local function write_run()
  for name, text in pairs(OF_RUN) do
    if random(2) == 1 then text = change_json(text) end
    write(RUN .. "/" .. name, text)
  end
end

local function read_run()
  local run, message = runs.read(RUN)
  if not run then return nil, message end
  for _, name in ipairs(run.names) do runs.best(run, name) end
  return runs.media(run)
end

local TOKENIZERS <const> = { read "spec/text/recorded/characters.json",
  read "spec/text/recorded/odd.json" }
local ARRAY <const> = lt.arange(24):reshape(2, 3, 4)
local PT <const> = { read "spec/files/state_dict.pt", read "spec/files/views.pt" }
local NPZ <const> = { made(lt.numpy.savez, { x = ARRAY, y = lt.ones(2) }),
  made(lt.numpy.savez_compressed, { x = ARRAY, y = lt.zeros(300) }) }

-- { name, what writes the file, what reads it }; readers give nil and a reason, or raise it.
local FORMATS <const> = {
  { ".pt", function() write(PATH, change_zip(PT[random(2)])) end,
    function() return lt.load(PATH) end },
  { ".npz", function() write(PATH, change_zip(NPZ[random(2)])) end,
    function() return lt.numpy.load(PATH) end },
  { ".ckpt", write_checkpoint, function()
    if random(2) == 1 then return lt.load(PATH) end
    return lt.CheckpointIO():load(PATH)
  end },
  { "tokenizer.json", function() write(PATH, change_json(TOKENIZERS[random(2)])) end,
    function()
      local tokenizer, reason = lt.text.tokenizer(PATH)
      if tokenizer then tokenizer:encode "a text" end
      return tokenizer, reason
    end },
  { "folders of runs", write_run, read_run },
}

lt.seed(SEED)
math.randomseed(SEED)
local counts, before = {}, proc_sizes("/proc/self/status").VmRSS or 0
for run = 1, RUNS do
  local format <const>, start <const> = FORMATS[random(#FORMATS)], clock()
  format[2]()
  local ok, value, reason = pcall(format[3])
  if not ok then value, reason = nil, value end
  local what <const> = ("run %d (%s): %s"):format(run, format[1], tostring(reason))
  assert(value ~= nil or type(reason) == "string", what)
  assert(reason == nil or reason:find ": " and not reason:find(INTERNAL), what)
  assert(clock() - start < 10, what)
  local count = counts[format[1]] or { 0, 0 }
  counts[format[1]] = { count[1] + 1, count[2] + (value ~= nil and 1 or 0) }
end
local grown <const> = (proc_sizes("/proc/self/status").VmRSS or 0) - before
local parts = {}
for _, format in ipairs(FORMATS) do
  local count <const> = counts[format[1]] or { 0, 0 }
  parts[#parts + 1] = ("%d of %d %s"):format(count[2], count[1], format[1])
end
os.execute(("rm -rf '%s'"):format(FOLDER))
print(("%d runs from seed %d: read %s"):format(RUNS, SEED, table.concat(parts, ", ")))
assert(grown < 600 << 20, ("the process has grown by %d MB"):format(grown >> 20))
