-- spec/fuzz/tables.lua: damaged tables and arrays: CSV, JSON, JSON Lines, .npy, .npz, safetensors
-- and the files of torch.save.
--
--   LT_SANITIZE=address,undefined ./dev fuzz tables [RUNS] [SEED]
--
-- Files are written by the library, then cut, and bytes of them changed, taken out, doubled or
-- replaced by words that mean something. A run ends well when nothing crashes, no reading takes
-- over ten seconds, and all that is refused is refused by a message that names the file and has no
-- control characters.
local lt = require "ltrain"

local RUNS <const>, SEED <const> = tonumber(arg[1] or 20000), tonumber(arg[2] or 1)
local random <const>, clock <const> = math.random, os.clock -- the time of the processor

-- In memory where there is such a folder: a disk takes longer than all that is read from it.
local IN_MEMORY <const> = ("/dev/shm/ltrain_fuzz.%d"):format(random(1 << 40))
local PATH <const> = io.open(IN_MEMORY, "wb") and IN_MEMORY or os.tmpname()

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(text)
  local file <close> = assert(io.open(PATH, "wb"))
  file:write(text)
end

-- What write(path) leaves in a file.
local function made(save, ...)
  assert(save(PATH, ...) ~= false)
  return read(PATH)
end

-- The same of a file of PyTorch's.
local function saved(value)
  local path <const> = PATH .. ".pth"
  assert(lt.save(path, value))
  local bytes <const> = read(path)
  os.remove(path)
  return bytes
end

local TABLE <const> = lt.csv.table {
  { "kind", { "oak", "elm, white", 'a "b"', "", "zwei\nZeilen", "Ö" } },
  { "size", lt.tensor { 1.5, 0 / 0, -2e30, 4, 5, 6 } }, { "n", { 1, 2, 3, 4, 5, 1 << 40 } },
}
local VALUE <const> = { a = { 1, 2.5, "x", true, { b = "ü\0" } }, c = {}, d = -1e-300 }
local ARRAY <const> = lt.arange(24):reshape(2, 3, 4)

local function lines(path)
  local list = {}
  for value in lt.json.lines(path) do list[#list + 1] = value end
  return list
end

-- { name, words that mean something, reader, seeds }; readers give nil and a reason, or raise it.
local FORMATS <const> = {
  { name = "CSV",
    words = { '"', ",", "\r\n", "\n", '""', "NaN", "1e999", "\xef\xbb\xbf", "\0", "-", "1e5" },
    read = function()
      return lt.csv.read(PATH, { header = random(4) > 1,
        delimiter = ({ ",", ";", "\t" })[random(3)],
        types = random(3) == 1 and { n = ({ "integer", "number", "text" })[random(3)] } or nil })
    end,
    seeds = { made(function(path) TABLE:write(path) end) } },
  { name = "JSON",
    words = { "[", "]", "{", "}", '"', "\\u0000", "\\ud800", "null", "1e999", "-0", "1.0", ",," },
    read = function() return lt.json.read(PATH) end, seeds = { made(lt.json.write, VALUE) } },
  { name = "JSON Lines",
    words = { "\n", "[", "{", '"', "null", "\n\n" },
    read = function() return lines(PATH) end,
    seeds = { made(lt.json.write_lines, { VALUE, 1, "x", { 2 } }) } },
  { name = ".npy",
    words = { "(", ")", ",", "'<f4'", "'|b1'", "'>i2'", "True",
      "99999999999999999999", "0, ", "}", "\xff\xff", "{", "-1", "'|O'" },
    read = function() return lt.numpy.load(PATH) end,
    seeds = { made(lt.numpy.save, ARRAY), made(lt.numpy.save, ARRAY:to "bool"),
      made(lt.numpy.save, lt.tensor(2.5)), made(lt.numpy.save, lt.zeros(0, 3)) } },
  { name = ".npz",
    words = { "PK\1\2", "PK\3\4", "PK\5\6", "\xff\xff\xff\xff", "\0\0", "\8\0", "\x93NUMPY" },
    read = function() return lt.numpy.load(PATH) end,
    seeds = { made(lt.numpy.savez, { x = ARRAY, y = lt.ones(2) }),
      made(lt.numpy.savez_compressed, { x = ARRAY, y = lt.zeros(300) }) } },
  { name = "safetensors",
    words = { "{", "}", '"', "[", "\\", "F32", "[0,24]", "\0", "1e9", "\xff" },
    read = function() return lt.load(PATH) end,
    seeds = { made(lt.save, { x = ARRAY, v = VALUE }), made(lt.save, lt.ones(2)) } },
  { name = "torch.save",
    words = { "PK\1\2", "X\4\0\0\0", "tR", "ctorch\nDoubleStorage\n", "Q",
      "}(", "\x81", "cos\nsystem\n", "h\0", "J\xff\xff\xff\xff" },
    read = function() return lt.load(PATH) end,
    seeds = { saved { x = ARRAY, y = ARRAY:transpose(1, 3), v = VALUE }, read "spec/files/old.pt",
      read "spec/files/objects.pt" } },
}

local function change(s, words)
  local at <const>, how <const> = random(1, #s), random(10)
  if how <= 3 then return s:sub(1, at - 1) .. string.char(random(0, 255)) .. s:sub(at + 1) end
  if how <= 5 then
    return s:sub(1, at - 1) .. string.char(s:byte(at) ~ 1 << random(0, 7)) .. s:sub(at + 1)
  end
  local word <const> = words[random(#words)]
  if how == 6 then return s:sub(1, at - 1) .. word .. s:sub(at + #word) end
  if how == 7 then return s:sub(1, at - 1) .. word .. s:sub(at) end
  if how == 8 then return s:sub(1, at - 1) .. s:sub(at + random(1, 9)) end
  if how == 9 then return s:sub(1, at) .. s:sub(at, at + random(0, 30)) .. s:sub(at + 1) end
  return s:sub(1, at)
end

local function damaged(format)
  local bytes = format.seeds[random(#format.seeds)]
  for _ = 1, ({ 0, 1, 1, 1, 2, 5 })[random(6)] do
    if #bytes > 0 then bytes = change(bytes, format.words) end
  end
  return bytes
end

lt.seed(SEED)
local counts = {}
for run = 1, RUNS do
  local k <const> = random(#FORMATS)
  local format <const>, start <const> = FORMATS[k], clock()
  write(damaged(format))
  local ok, value, reason = pcall(format.read)
  if not ok then value, reason = nil, value end
  assert(value ~= nil or type(reason) == "string" or format.name == "JSON",
    ("run %d: no reason"):format(run))
  assert(reason == nil or reason:find(PATH, 1, true) and not reason:find "%c", reason)
  assert(clock() - start < 10, ("run %d took %g s"):format(run, clock() - start))
  if value ~= nil then counts[k] = (counts[k] or 0) + 1 end
end
os.remove(PATH)
local parts = {}
for k, format in ipairs(FORMATS) do parts[k] = ("%d %s"):format(counts[k] or 0, format.name) end
print(("%d runs from seed %d: read %s"):format(RUNS, SEED, table.concat(parts, ", ")))
