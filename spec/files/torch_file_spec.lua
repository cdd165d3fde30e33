-- spec/files/torch_file_spec.lua: lt.load of files that torch.save wrote (those beside it, by
-- torch_files.py), and of files that are made to do harm.
-- tags: slow
local lt = require "ltrain"
local console = require "ltrain.core.console"
local zip = require "spec.files.zip"

local path
local say, lines = console.say, {}

local function recorded(name) return ("spec/files/%s.pt"):format(name) end

local function bytes_of(file)
  local f <close> = assert(io.open(file, "rb"))
  return f:read "a"
end

local function write(bytes)
  local f <close> = assert(io.open(path, "wb"))
  f:write(bytes)
end

-- The reason for which a file of these bytes is not read.
local function refusal(bytes)
  write(bytes)
  local value, why = lt.load(path)
  assert.is_nil(value)
  return why
end

-- A file of a pickle, the instructions after its protocol, and of 12 bytes of storage "0".
local function archive(pickle, more)
  local members = { { "x/data.pkl", "\x80\2" .. pickle .. "." }, { "x/data/0", ("\0"):rep(12) } }
  for _, member in ipairs(more or {}) do members[#members + 1] = member end
  return zip(members)
end

-- A file of before 1.6: `pickle`, one of the keys of storages, and these: { key, count, bytes }.
local function old_archive(pickle, storages)
  local keys, parts = {}, {}
  for k, storage in ipairs(storages) do
    keys[k] = "X" .. ("<s4"):pack(storage[1])
    parts[k] = ("<i8"):pack(storage[2]) .. storage[3]
  end
  return "\x80\2\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3."
    .. "\x80\2}U\x0dlittle_endian\x88s.\x80\2" .. pickle .. ".\x80\2]("
    .. table.concat(keys) .. "e." .. table.concat(parts)
end

local function text(s) return "X" .. ("<s4"):pack(s) end
local function int(n) return n == n << 32 >> 32 and "J" .. ("<i4"):pack(n)
  or "\x8a\8" .. ("<i8"):pack(n) end
local function tuple(...) return "(" .. table.concat { ... } .. "t" end
local function ints(...)
  local parts = { ... }
  for i, n in ipairs(parts) do parts[i] = int(n) end
  return tuple(table.unpack(parts))
end

-- A tensor of storage "0" as torch.save writes it; `o` changes parts.
local function tensor(o)
  o = o or {}
  return "ctorch._utils\n_rebuild_tensor_v2\n" .. tuple(
    tuple(text "storage", o.class or "ctorch\nFloatStorage\n", text(o.key or "0"), text "cpu",
      int(o.count or 3)) .. "Q", int(o.offset or 0), o.size or ints(3), o.stride or ints(1),
    "\x89", "ccollections\nOrderedDict\n)R", o.metadata or "") .. "R"
end

before_each(function()
  path, lines = os.tmpname(), {}
  console.say = function(line) lines[#lines + 1] = line end
end)
after_each(function()
  console.say = say
  os.remove(path)
end)

describe("lt.load of a file of torch.save", function()
  it("gives the tensors of a state_dict by name, which a module of the names takes", function()
    local state = assert(lt.load(recorded "state_dict"))
    assert.same({ { 0, 1, 2 }, { 3, 4, 5 } }, state["0.weight"]:tolist())
    assert.same({ "f32", "i64" }, { state["0.bias"].dtype, state["1.num_batches_tracked"].dtype })
    local net = lt.nn.Sequential(lt.nn.Linear(3, 2), lt.nn.BatchNorm1d(2))
    net:load_state_dict(state)
    assert.same({ 0.5, -0.5 }, net[1].bias:tolist())
  end)

  it("gives numbers, strings, booleans, lists, tuples and dicts; None is nil", function()
    local v = assert(lt.load(recorded "values"))
    assert.same({ "a", "b", nil, "é\0" }, v.names)
    assert.same({ { 2, 3 }, { 0.9, 0.999 }, { {}, { 1 }, { 1, 2, 3, 4 } } },
      { v.shape, v.betas, v.tuple })
    assert.same({ 1e-3, 7, -(1 << 62), true, false, "raw" },
      { v.lr, v.steps, v.big, v.ok, v.off, v.bytes })
    assert.same({ { params = { 0, 1 }, lr = 0.1 } }, v.groups)
    assert.same({ a = 2, b = 1 }, v.ordered)
    assert.equal(3, v.state[0].step:item())
    assert.same({ 1, 2 }, v.parameter:tolist())
    assert.is_false(v.parameter.requires_grad)
    assert.is_nil(v.nothing)
  end)

  it("keeps strides, and memory that tensors share", function()
    local v = assert(lt.load(recorded "views"))
    assert.same({ 4, 3, 2 }, v.transposed.shape)
    assert.equal(23, v.transposed[4][3][2]:item())
    assert.same({ { 20, 21, 22, 23 }, { 0, 2 }, { 0, 0, 0 } },
      { v.row:tolist(), v.step:tolist(), v.expanded:tolist() })
    assert.same({ 0, 3, 4 }, v.empty.shape)
    assert.equal(17, v.scalar:item())
    assert.is_true(rawequal(v.base, v.tied))
    v.base:fill_(9)
    assert.same({ 9, 9, 9, 9 }, v.row:tolist())
    assert.equal(8299 * 8300 // 2, v.large:sum():item())
    v.large:fill_(1)
    assert.equal(8299 * 8300 // 2, assert(lt.load(recorded "views")).large:sum():item())
  end)

  it("reads each dtype that was recorded", function()
    local v, names = assert(lt.load(recorded "dtypes")), {}
    for _, row in ipairs(lt.dtypes()) do names[row.torch_name] = row.name end
    for torch_name, x in pairs(v) do
      assert.equal(names[torch_name], x.dtype)
      assert.same({ 0, 1, 1 }, x:to "f64":tolist())
    end
    for _, name in ipairs { "float32", "int64", "bool" } do assert.is_truthy(v[name]) end
  end)

  it("puts tensors where map_location says, and names where they were", function()
    write(archive((tensor():gsub("cpu", "gpu"))))
    local seen = {}
    local x = assert(lt.load(path, { map_location = function(t, device)
      seen[#seen + 1] = device
      return t + 1
    end }))
    assert.same({ { "gpu" }, { 1, 1, 1 } }, { seen, x:tolist() })
  end)

  it("reads one that was written without checksums", function()
    assert.same({ 1, 1 }, assert(lt.load(recorded "no_crc")):tolist())
  end)

  it("reads the format of before 1.6, whatever the file is called", function()
    local state, new = assert(lt.load(recorded "old")), assert(lt.load(recorded "state_dict"))
    for name, x in pairs(new) do assert.same(x:tolist(), state[name]:tolist()) end
    path = path .. ".pth.tar"
    write(bytes_of(recorded "old"))
    assert.same({ 0.5, -0.5 }, assert(lt.load(path))["0.bias"]:tolist())
    local v = assert(lt.load(recorded "old_views"))
    assert.same({ { 0, 12 }, { 4, 16 }, { 8, 20 } }, v.transposed[1]:tolist())
    assert.same({ {}, { 1, 2 } }, { v.empty:tolist(), v.uint16:tolist() })
    v.base:fill_(9)
    assert.same({ { 9, 9, 9, 9 }, true }, { v.row:tolist(), rawequal(v.base, v.tied) })
  end)

  it("reads parameters and tensors as PyTorch wrote them before 0.4, from Python 2 too", function()
    local storage = tuple(text "storage", "ctorch\nFloatStorage\n", text "7", text "cpu", int(2),
      "N") .. "Q"
    write(old_archive("ccollections\nOrderedDict\n](](U\1wctorch.nn.parameter\nParameter\n"
      .. "ctorch._utils\n_rebuild_tensor\n" .. tuple(storage, int(0), ints(2), ints(1)) .. "R"
      .. "\x85R" .. tuple("\x88", "\x89", "N") .. "bee\x85R",
      { { "7", 2, ("<ff"):pack(1.5, 2.5) } }))
    assert.same({ 1.5, 2.5 }, assert(lt.load(path)).w:tolist())
  end)

  it("gives objects that are plain values as these", function()
    local v = assert(lt.load(recorded "objects"))
    assert.same({ lr = 0.5, inner = { n = { 1 } } }, { lr = v.args.lr, inner = v.args.inner })
    assert.same({ 1, 1 }, v.args.weight:tolist())
    assert.same({ 2.5, 3, true, 0.1 }, v.numbers)
    assert.same({ { 0, 1, 2 }, { 3, 4, 5 } }, v.array:tolist())
    assert.same({ "\xff\0", { 2, 3 }, "f32", { "cpu", "cuda:1" } },
      { v.bytes, v.size, v.dtype, v.devices })
    assert.same({ { a = 2, b = 1 }, { 7 }, { b = 1 }, { x = { 1 } }, { 1, 2 } },
      { v.counter, v.set, v.ordered, v.default, v.deque })
  end)

  it("leaves other objects out, which one warning names, and gives the tensors", function()
    local v = assert(lt.load(recorded "objects"))
    assert.same({ { 0, 1, 2 }, { nil, nil, nil, nil, 4 } }, { v.w:tolist(), v.left })
    assert.same({ "warning: load: spec/files/objects.pt: left out, being neither tensors nor plain "
      .. "values: __main__.Model, an array of NumPy, builtins.complex, torch.complex64" }, lines)
  end)

  it("does not leave out an object that holds tensors", function()
    local field = "}(" .. text "w" .. tensor() .. "u"
    assert.matches("contains some.Thing: only tensors", refusal(archive("](csome\nThing\n)\x81"
      .. field .. "be")))
    assert.matches("contains some.Thing: only tensors", refusal(archive("](csome\nThing\n("
      .. tensor() .. "tRe")))
    assert.matches("contains tensors in fields of a dict: only",
      refusal(archive("}" .. field .. "b")))
  end)

  it("refuses what is neither tensor nor plain value by its name", function()
    local function why(name) return select(2, lt.load(recorded(name))) end
    assert.equal(
      "load: spec/files/model.pt: contains __main__.Model: only tensors, numbers, strings, "
      .. "lists and dicts are read; save model.state_dict()", why "model")
    assert.matches("contains torch.float8_e4m3fn, a dtype that ltrain does not have", why "float8")
    assert.matches("contains torch.ComplexFloatStorage, a dtype that", why "complex")
    assert.matches("contains os.system: only", refusal(archive "cos\nsystem\n(X\2\0\0\0lstR"))
    assert.matches("contains builtins.eval: only",
      refusal(archive "\x8c\x08builtins\x8c\4eval\x93\x8c\0\x85R"))
    assert.matches("contains torch.storage._load_from_bytes: only",
      refusal(archive "ctorch.storage\n_load_from_bytes\n(tR"))
    assert.matches("instruction 111, which is not read", refusal(
      archive "(ccollections\nOrderedDict\no"))
    assert.matches("contains None", refusal(archive "N"))
    assert.matches("contains collections.OrderedDict: only", refusal(archive
      "ccollections\nOrderedDict\n"))
    assert.matches("contains an integer of more than 64 bits", refusal(archive
      ("\x8a\9" .. ("\1"):rep(9))))
    assert.matches("a key that is neither a string nor a number", refusal(archive "})K\1s"))
  end)

  it("is no checkpoint of ltrain, which a message says", function()
    local net, why = lt.nn.Linear:load_from_checkpoint(recorded "state_dict")
    assert.is_nil(net)
    assert.equal("spec/files/state_dict.pt: not a checkpoint of ltrain: torch.save wrote it, "
      .. "lt.load reads it", why)
  end)

  it("refuses what it cannot read of another kind of zip file", function()
    assert.matches("none of torch.save: it has no data.pkl", refusal(zip { { "x.txt", "x" } }))
    assert.matches("contains NumPy arrays: lt.numpy.load reads it",
      refusal(zip { { "x.npy", "x" } }))
    assert.matches("is TorchScript: torch.save its state_dict", refusal(archive("}",
      { { "x/constants.pkl", "" } })))
    assert.matches("written in big byte order", refusal(archive("}", { { "x/byteorder", "big" } })))
    assert.same({}, (function() write(archive("}", { { "x/byteorder", "little" } })); return
      lt.load(path) end)())
  end)
end)

describe("a hostile file of torch.save", function()
  it("reads no memory beyond its storage", function()
    write(archive(tensor()))
    assert.same({ 0, 0, 0 }, assert(lt.load(path)):tolist())
    for _, o in ipairs { { offset = 1 }, { offset = -1 }, { size = ints(4) },
      { size = ints(2), stride = ints(3) }, { size = ints(-1) }, { size = ints(2), stride =
      ints(-1) }, { size = ints(1 << 62, 1 << 62), stride = ints(0, 0) },
      { size = ints(3, 1 << 40), stride = ints(1, 1 << 40) }, { size = ints(3), stride = ints() },
      { offset = math.maxinteger }, { size = ints(0), offset = 4 } } do
      assert.matches("is damaged: a tensor is outside of its storage", refusal(archive(tensor(o))))
    end
    assert.matches("more than 8 dimensions", refusal(archive(tensor {
      size = ints(1, 1, 1, 1, 1, 1, 1, 1, 1), stride = ints(1, 1, 1, 1, 1, 1, 1, 1, 1) })))
    assert.matches("storage 1 is missing", refusal(archive(tensor { key = "1" })))
    assert.matches("storage 0 has not its size", refusal(archive(tensor { count = 1 << 40 })))
    assert.matches("storage 0 has not its size", refusal(archive(tensor {
      class = "ctorch\nDoubleStorage\n" })))
    assert.matches("a storage has no name", refusal(archive(tensor { class = "K\1" })))
    assert.matches("conjugated or negated", refusal(archive(tensor { metadata = "}" })))
    assert.matches("storage 0 has not its size", refusal(archive("(" .. tensor() .. tensor {
      class = "ctorch\nIntStorage\n" } .. "l")))
  end)

  it("is refused for bytes of a bool that are neither 0 nor 1", function()
    assert.matches("is bool, and has bytes that are neither", refusal(zip { { "x/data.pkl", "\x80\2"
      .. tensor { class = "ctorch\nBoolStorage\n", size = ints(2), count = 2 } .. "." },
      { "x/data/0", "\1\2" } }))
  end)

  it("cannot contain itself, nor nest without end, nor be larger than its pickle", function()
    assert.matches("contains a list that contains itself", refusal(archive "]q\0h\0a"))
    assert.matches("contains a dict that contains itself", refusal(archive
      ("}q\0" .. text "a" .. "]h\0as")))
    assert.matches("nested deeper than 128 levels", refusal(archive(("]"):rep(200)
      .. ("a"):rep(199))))
    assert.matches("nested deeper than 128 levels", refusal(archive(("]"):rep(100000)
      .. ("a"):rep(99999))))
    assert.matches("more than 4194304 values", refusal(archive(("("):rep((1 << 22) + 1))))
    local shared = "]q\0" -- 2^100 lists, 100 of them different
    for i = 0, 99 do shared = shared .. ("](h%ch%ceq%c"):format(i, i, i + 1) end
    write(archive(shared))
    assert.equal(2, #assert(lt.load(path)))
    assert.matches("a pickle ends too early", refusal(archive "X\xff\xff\xff\xff"))
    assert.matches("a pickle ends too early", refusal(archive ("\x8e" .. ("<i8"):pack(-1))))
    assert.matches("a pickle ends too early", refusal(archive "\x8b\8\0\0\0"))
  end)

  it("is refused for a pickle that takes what it has not", function()
    for _, pickle in ipairs { "", "0", "a", "]a", "K\1K\2a", "t", "e", "]e", "(K\1e", "K\1(K\2e",
      "h\0", "j\0\0\0\1", "R", "K\1)R", "ccollections\nOrderedDict\nK\1R", "Q", "b", "K\1K\1b",
      "\x85", "K\1\x87", "c", "cx", "cx\n", "\x93", "K\1K\2\x93", "q", "\x80\6" } do
      assert.matches("pickle", refusal(archive(pickle)), pickle)
    end
  end)

  it("is refused for a dict with a key without a value", function()
    assert.matches("a key without a value", refusal(archive "}(K\1u"))
  end)

  it("is refused for members that are packed, hidden, or share bytes", function()
    local members = { { "x/data.pkl", "\x80\2}." }, { "x/data/0", "0123" } }
    local function why(change)
      return refusal(zip(members, function(n, entry) if n == 2 then change(entry) end end))
    end
    assert.same({}, (function() write(zip(members)) return lt.load(path) end)())
    assert.matches("'x/data/0' is compressed", why(function(e) e.method = 8 end))
    assert.matches("'x/data/0' is encrypted", why(function(e) e.flags = 1 end))
    assert.matches("'x/data/0' has two sizes", why(function(e) e.packed = 3 end))
    assert.matches("is outside of the file", why(function(e) e.size, e.packed = 99, 99 end))
    assert.matches("is not where the directory says", why(function(e) e.at = 1 end))
    assert.matches("overlaps another", why(function(e)
      e.at, e.name, e.size, e.packed = 0, "x/data.pk2", 3, 3
    end))
    assert.matches("lacks its size", why(function(e) e.at = 0xffffffff end))
    assert.matches("is there twice", refusal(zip { members[2], members[1], members[2] }))
    assert.matches("has other bytes than were written", refusal(zip(members, function(n, e)
      if n == 1 then e.crc = 7 end
    end)))
    assert.matches("its directory is missing", refusal(zip(members) .. "x"))
    assert.matches("its directory is missing", refusal(zip(members):sub(1, -2)))
  end)

  it("is refused in the format of before 1.6 where storages are missing or short", function()
    local function one(count) return tensor { key = "7", count = count } end
    assert.matches("storage 7 is missing", refusal(old_archive(one(3), {})))
    assert.matches("it ends too early", refusal(old_archive(one(3), { { "7", 3, "12345678" } })))
    assert.matches("it ends too early", refusal(old_archive(one(1 << 40), { { "7", 3, "" } })))
    assert.matches("storage 7 has not its size", refusal(old_archive(one(3), { { "7", 2,
      "123456789012" } })))
    assert.matches("has other storages", refusal(old_archive(one(3), { { "8", 3, "" } })))
    assert.matches("a storage has no name", refusal(old_archive(one(-1), { { "7", 3, "" } })))
    assert.matches("a pickle ends too early", refusal(bytes_of(recorded "old"):sub(1, 300)))
  end)

  it("never ends the program, whatever bytes of a file have changed", function()
    lt.seed(1)
    local good = { bytes_of(recorded "state_dict"), bytes_of(recorded "values"),
      archive("}" .. text "a" .. tensor() .. "s"), bytes_of(recorded "objects"),
      bytes_of(recorded "old") }
    local random, refused = 12345, 0
    local function draw(n)
      random = (random * 6364136223846793005 + 1442695040888963407) & math.maxinteger
      return (random >> 33) % n + 1
    end
    for i = 1, 600 do
      local bytes = good[i % #good + 1]
      for _ = 1, draw(3) do
        local at, kind = draw(#bytes), draw(4)
        local put = kind == 1 and "" or kind == 2 and string.char(draw(256) - 1, draw(256) - 1)
          or string.char(draw(256) - 1)
        bytes = bytes:sub(1, at - 1) .. put .. bytes:sub(at + 1)
      end
      write(bytes)
      local ok, value, why = pcall(lt.load, path)
      assert(ok, value)
      if value == nil then
        assert.equal("string", type(why))
        refused = refused + 1
      end
    end
    assert.is_true(refused > 250)
    for n = 0, #good[1], 61 do refusal(good[1]:sub(1, n)) end
  end)
end)
