-- spec/files/save_spec.lua: lt.save and lt.load, JSON, files that are damaged or cannot be written.

local c = require "ltrain.c"
local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"

local path

local function bytes_of(name)
  local file <close> = assert(io.open(name, "rb"))
  return file:read("a")
end

local function write(name, bytes)
  local file <close> = assert(io.open(name, "wb"))
  file:write(bytes)
end

before_each(function() path = os.tmpname() end)
after_each(function() os.remove(path) end)

-- A safetensors file of one f32 tensor `x` of n elements, its bytes at an odd offset or not.
local function foreign(n, odd, metadata)
  local head = ('{%s"x":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}'):format(
    metadata or "", n, 4 * n)
  while (#head % 2 == 1) ~= odd or not odd and #head % 8 ~= 0 do head = head .. " " end
  local bytes = {}
  for i = 0, n - 1 do bytes[i + 1] = string.pack("<f", i) end
  write(path, string.pack("<I8", #head) .. head .. table.concat(bytes))
end

describe("a large tensor of a file", function()
  local n <const> = 1 << 17 -- half a MiB of f32

  local function live() return c.runtime.memory().live_bytes end

  it("takes no memory of its own: it is in the file", function()
    foreign(n, false)
    collectgarbage()
    local before = live()
    local x = assert(lt.load(path)).x
    assert.is_true(live() - before < 65536)
    assert.equal(n - 1, x[n]:item())
    assert.equal(n * (n - 1) / 2, x:double():sum():item())
  end)

  it("is copied where it is written: the file keeps its bytes", function()
    foreign(n, false)
    local before = bytes_of(path)
    local x, y = assert(lt.load(path)).x, assert(lt.load(path)).x
    x:mul_(2)
    x[1] = 7
    assert.same({ 7, 2, 2 * (n - 1) }, { x[1]:item(), x[2]:item(), x[n]:item() })
    assert.same({ 0, 1, n - 1 }, { y[1]:item(), y[2]:item(), y[n]:item() })
    assert.is_true(before == bytes_of(path))
  end)

  it("is written in PyTorch's order of arguments too", function()
    assert(lt.save({ x = lt.ones(n) }, path))
    assert.equal(n, assert(lt.load(path)).x:sum():item())
  end)

  it("stays when its file is saved over or removed", function()
    assert(lt.save(path, { x = lt.ones(n) }))
    local x = assert(lt.load(path)).x
    assert(lt.save(path, { x = x * 2 }))
    assert.equal(n, x:sum():item())
    assert(lt.save(path, assert(lt.load(path)))) -- from the file onto itself
    local y = assert(lt.load(path)).x
    os.remove(path)
    assert.equal(2 * n, y:sum():item())
    assert.equal(n, x:sum():item())
  end)

  it("is read where its bytes are not aligned", function()
    foreign(n, true)
    local x = assert(lt.load(path)).x
    assert.equal(n - 1, x[n]:item())
    assert.equal(n * (n - 1) / 2, x:double():sum():item())
  end)

  it("is checked against its CRC", function()
    assert(lt.save(path, { x = lt.ones(n) }))
    local bytes = bytes_of(path)
    write(path, bytes:sub(1, -3) .. "\x01" .. bytes:sub(-1))
    local loaded, why = lt.load(path)
    assert.is_nil(loaded)
    assert.matches("the bytes of tensor 'x' have changed", why)
  end)

  it("is copied once into a module's parameters", function()
    local net = lt.nn.Linear(512, 256, { bias = false })
    assert(lt.save(path, net:state_dict()))
    collectgarbage()
    local before = live()
    net:load_state_dict(assert(lt.load(path)))
    assert.is_true(live() - before < 65536)
  end)
end)

describe("lt.save", function()
  it("writes nested tables of tensors and plain values", function()
    local saved = {
      net = { lt.ones(2, 3), { w = lt.tensor { 1, 2 } } },
      lr = 1 / 3, steps = 7, float = 7.0, big = math.mininteger, name = "0x1p+0", raw = "\0\xff",
      ok = true, off = false, inf = -math.huge, empty = {},
      mixed = { 1, 2, x = 3, [7] = lt.zeros(1) }, ["$tensor"] = "a",
    }
    assert.is_true(lt.save(path, saved))
    local loaded = lt.load(path)
    assert.same({ 2, 3 }, loaded.net[1].shape)
    assert.same({ 1, 2 }, loaded.net[2].w:tolist())
    assert.equal("i64", loaded.net[2].w.dtype)
    assert.same({ 0.0 }, loaded.mixed[7]:tolist())
    loaded.net, saved.net, loaded.mixed[7], saved.mixed[7] = nil, nil, nil, nil
    assert.same(saved, loaded)
    assert.equal("integer", math.type(loaded.steps))
    assert.equal("float", math.type(loaded.float))
  end)

  it("keeps nan and signed zero", function()
    lt.save(path, { nan = 0 / 0, zero = -0.0 })
    local loaded = lt.load(path)
    assert.is_true(loaded.nan ~= loaded.nan)
    assert.equal(-math.huge, 1 / loaded.zero)
  end)

  it("takes a tensor or a plain value alone", function()
    lt.save(path, lt.arange(3))
    assert.same({ 0, 1, 2 }, lt.load(path):tolist())
    lt.save(path, "text")
    assert.equal("text", lt.load(path))
  end)

  it("writes rows of any layout, and no history", function()
    local x = lt.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }
    x.requires_grad = true
    lt.save(path, { x:transpose(1, 2), x * 2 })
    local loaded = lt.load(path)
    assert.same({ { 1, 3 }, { 2, 4 } }, loaded[1]:tolist())
    assert.is_false(loaded[2].requires_grad)
  end)

  it("writes a shared tensor once and gives it back shared", function()
    local x = lt.ones(1000)
    lt.save(path, { a = x, b = x, c = { x } })
    assert.is_true(#bytes_of(path) < 6000)
    local loaded = lt.load(path)
    loaded.a:fill_(5)
    assert.equal(5, loaded.b[1]:item())
    assert.equal(5, loaded.c[1][1]:item())
  end)

  it("writes the same bytes for the same tree", function()
    lt.save(path, { b = 1, a = { z = lt.ones(2), y = lt.zeros(3) } })
    local first = bytes_of(path)
    lt.save(path, { a = { y = lt.zeros(3), z = lt.ones(2) }, b = 1 })
    assert.equal(first, bytes_of(path))
  end)

  it("returns nil and the reason when the file cannot be written", function()
    local ok, message = lt.save("/nonexistent/a.st", { lt.ones(1) })
    assert.is_nil(ok)
    assert.equal("save: cannot write /nonexistent/a.st: No such file or directory", message)
  end)

  it("raises at the user's line on what cannot be saved", function()
    local message = error_of(function() lt.save(path, { a = { f = print } }) end)
    has(message, "save_spec.lua:")
    has(message, "save: a.f cannot be saved: it is a function")
    has(error_of(lt.save, path, nil), "there is nothing to save")
    has(error_of(lt.save, path, { [1.5] = 1 }), "a key that is neither a number nor a string")
    has(error_of(lt.save, path, { ["a.b"] = lt.ones(1), a = { b = lt.ones(1) } }),
      "two tensors would be called 'a.b'")
    local loop = {}
    loop.loop = loop
    has(error_of(lt.save, path, loop), "contains itself")
  end)
end)

describe("lt.load", function()
  it("gives tensors and metadata of other safetensors files", function()
    local header = '{"__metadata__":{"format":"pt"},"w":{"dtype":"I32","shape":[2],'
      .. '"data_offsets":[0,8]}}'
    write(path, ("<I8"):pack(#header) .. header .. ("<i4i4"):pack(5, -6))
    local tensors, metadata = lt.load(path, { metadata = true })
    assert.same({ 5, -6 }, tensors.w:tolist())
    assert.same({ format = "pt" }, metadata)
  end)

  it("returns the value alone, whoever wrote the file", function()
    foreign(4, false, '"__metadata__":{"format":"pt"},')
    assert.equal(1, select("#", lt.load(path)))
    assert(lt.save(path, { a = 1 }))
    assert.equal(1, select("#", lt.load(path)))
    assert.equal(1, select("#", lt.load "spec/files/values.pt"))
  end)

  it("returns nil and the reason for a file that is missing or no such file", function()
    local value, message = lt.load("/nonexistent/a.st")
    assert.is_nil(value)
    has(message, "load: cannot open /nonexistent/a.st: No such file")
    write(path, "hello")
    value, message = lt.load(path)
    assert.is_nil(value)
    has(message, path .. " is not a safetensors file: only 5 bytes")
  end)

  it("writes control characters of a file as escapes", function()
    local header = '{"a\27[31m":\1}'
    write(path, ("<I8"):pack(#header) .. header)
    local _, message = lt.load(path)
    has(message, path)
    assert.is_nil(message:find "%c")
  end)

  it("finds every byte of a tensor that has changed", function()
    lt.save(path, { w = lt.arange(4):to("f32") })
    local good = bytes_of(path)
    for at = #good - 15, #good do
      local changed = string.char(good:byte(at) ~ 1)
      write(path, good:sub(1, at - 1) .. changed .. good:sub(at + 1))
      local value, message = lt.load(path)
      assert.is_nil(value)
      has(message, "damaged: the bytes of tensor 'w' have changed")
    end
  end)

  it("never raises on a damaged file", function()
    lt.save(path, { w = lt.ones(3), deep = { 1, { x = "a" } }, f = 1 / 3 })
    local good = bytes_of(path)
    for at = 1, #good, 3 do
      write(path, good:sub(1, at - 1) .. "x" .. good:sub(at + 1))
      assert.is_true((pcall(lt.load, path)))
      write(path, good:sub(1, at))
      assert.is_nil((lt.load(path)) and at < #good or nil)
    end
  end)

  it("refuses a newer format with both numbers", function()
    lt.save(path, { 1 })
    local newer = bytes_of(path):gsub('\\"format\\":1', '\\"format\\":2')
    write(path, (newer:gsub("ltrain.crc32", "ltrain.other")))
    local value, message = lt.load(path)
    assert.is_nil(value)
    has(message, "format 2; this ltrain reads up to 1")
  end)
end)

describe("io.json_encode", function()
  local encode <const>, decode <const> = c.io.json_encode, c.io.json_decode

  it("sorts keys and keeps integers and floats apart", function()
    assert.equal('{"a":[1,2.0,{}],"b":{"c":null2}}',
      (encode { b = { c = "null2" }, a = { 1, 2.0, {} } }:gsub('"null2"', "null2")))
    local back = decode "[1, 1.0]"
    assert.equal("integer", math.type(back[1]))
    assert.equal("float", math.type(back[2]))
  end)

  it("gives doubles back bit for bit", function()
    for _, x in ipairs { 0.1, 1 / 3, -2.5e-310, math.pi, 1e300, math.huge, -math.huge } do
      assert.equal(x, decode(encode(x)))
    end
    assert.equal("0.1", encode(0.1))
    assert.equal('"0x1.5555555555555p-2"', encode(1 / 3))
  end)

  it("writes decimals and plain strings when asked for plain text", function()
    local plain = { plain = true }
    assert.equal('[0.3333333333333333,"nan","=x"]', encode({ 1 / 3, 0 / 0, "=x" }, plain))
    assert.same({ "inf", "=x" }, decode('["inf","=x"]', plain))
  end)

  it("returns nil and the position for what is not JSON", function()
    local value, message = decode "[1,\n 2"
    assert.is_nil(value)
    has(message, "json: not JSON: ")
    has(message, "(line 2, column 2)")
    has(select(2, decode(("["):rep(200) .. ("]"):rep(200))), "nested deeper than 128 levels")
    has(select(2, decode '"~\u{20ac}"'), "a byte string has characters above U+00FF")
  end)

  it("refuses what RFC 8259 does not have", function()
    for _, text in ipairs { "", " ", "01", "1.", ".5", "-", "+1", "1e", "1e400", "nul", "truex",
      "9223372036854775808", "[1,]", "[,]", "[1 2]", '{"a":1,}', '{"a"}', "{a:1}", "{1:2}",
      '{"a":1,"a":2}', '{"a":null,"a":null}', '{"a\\u0000":1}', '"', '"\\x"', '"\\u12"',
      '"\\ud800"', '"\\ud800\\u0041"', '"\\udc00"', '"\n"', '"\0"', '"\xff"', '"\xc0\x80"',
      '"\xed\xa0\x80"', '"\xe2\x82"', "[1] 2", "1\0", "\u{feff}1", '"a\\"', '"\\' } do
      local value <const>, message = decode(text)
      assert.is_nil(value)
      has(message, "json: not JSON: ")
    end
  end)

  it("reads what RFC 8259 has", function()
    local plain <const> = { plain = true }
    local escapes <const> = '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00\\u0000"'
    for text, value in pairs { [' [ 1 , { } ]\r\n\t'] = { 1, {} }, ["-0"] = 0, ["1E+2"] = 100.0,
      ["-1.5e-1"] = -0.15, ["9223372036854775807"] = math.maxinteger, ["true"] = true,
      [escapes] = '"\\/\b\f\n\r\t\u{e9}\u{1f600}\0',
      ['"\x7f\u{e9}\u{1f600}~"'] = "\x7f\u{e9}\u{1f600}~", ['{"a":null,"b":[null]}'] = { b = {} },
      ['{"":{"":""}}'] = { [""] = { [""] = "" } } } do
      assert.same(value, (decode(text, plain)))
      assert.equal(math.type(value), math.type(decode(text, plain)))
    end
    assert.same({ 1, nil, 3 }, decode "[1,null,3]")
  end)

  it("raises on what JSON has no form for, naming the place", function()
    has(error_of(encode, { a = { 1, print } }), "value.a[2] is a function")
    has(error_of(encode, { a = { 1, x = 2 } }), "value.a has both positions and names")
    has(error_of(encode, { [2] = 1 }), "neither a name nor one of 1, 2")
    has(error_of(encode, setmetatable({}, {})), "value is an object")
    has(error_of(encode, { "\xff" }, { plain = true }), "a string is not UTF-8")
  end)
end)

describe("io", function()
  it("reads, writes, appends, lists and removes", function()
    local folder = path .. ".d"
    assert.is_true(c.io.make_folder(folder .. "/b"))
    assert.is_true(c.io.write_file(folder .. "/a", "1\n"))
    assert.is_true(c.io.append_file(folder .. "/a", "2\n"))
    assert.equal("1\n2\n", c.io.read_file(folder .. "/a"))
    assert.same({ "a", "b" }, c.io.list_folder(folder))
    assert.equal("folder", c.io.kind(folder))
    assert.equal("file", c.io.kind(folder .. "/a"))
    assert.is_true(math.abs(c.io.modified(folder .. "/a") - os.time()) < 60)
    assert.is_true(c.io.remove(folder .. "/a"))
    assert.is_true(c.io.remove(folder .. "/b"))
    assert.is_true(c.io.remove(folder))
    assert.is_nil(c.io.kind(folder))
    assert.is_nil(c.io.modified(folder))
  end)

  it("gives nil and the reason when the world fails, raises on wrong use", function()
    local value, message = c.io.read_file("/nonexistent")
    assert.is_nil(value)
    assert.equal("read: cannot open /nonexistent: No such file or directory", message)
    has(error_of(c.io.read_file, "a\0b"), "not a path")
    has(error_of(c.io.read_file, 3), "the path must be a string, got 3")
    has(error_of(c.io.save_safetensors, path, { a = 1 }), "'a' must be a tensor, got 1")
    has(error_of(c.io.save_safetensors, path, {}, { a = 1 }), "metadata 'a' must be a string")
  end)
end)

describe("the header of a file", function()
  local value <const> = { name = "x", list = { 1, 2.5, true }, weight = lt.arange(3) }

  it("has a checksum: a changed bit is refused in a sentence", function()
    assert(lt.save(path, value))
    local bytes = bytes_of(path)
    local last = 8 + string.unpack("<I8", bytes)
    assert.is_true(last > 200)
    for at = 1, last do
      local byte = string.char(bytes:byte(at) ~ 1 << at % 8)
      write(path, bytes:sub(1, at - 1) .. byte .. bytes:sub(at + 1))
      local loaded, message = lt.load(path)
      assert.is_nil(loaded, at)
      assert.equal("load: " .. path, message:sub(1, 6 + #path))
    end
  end)

  it("without a checksum is read, as older files are", function()
    assert(lt.save(path, value))
    local bytes = bytes_of(path)
    local head = bytes:sub(9, 8 + string.unpack("<I8", bytes))
    local cut = head:gsub(',?"ltrain.crc32":"%x+"', "")
    local old = cut:gsub(',\\"sealed\\":true', "")
    assert.is_true(#old < #cut and #cut < #head)
    write(path, string.pack("<I8", #old) .. old .. bytes:sub(9 + #head))
    assert.same({ 1, 2.5, true }, assert(lt.load(path)).list)
    write(path, string.pack("<I8", #cut) .. cut .. bytes:sub(9 + #head))
    has(select(2, lt.load(path)), "damaged: the checksum of the header is missing")
  end)
end)

describe("what is not a plain file", function()
  it("is refused before it is opened: a pipe that nobody writes, a device, a folder", function()
    os.remove(path)
    assert(os.execute(("mkfifo '%s'"):format(path)))
    for _, name in ipairs { path, "/dev/zero", "/dev/null", "/tmp" } do
      local value, message = lt.load(name)
      assert.is_nil(value)
      assert.equal("load: not a plain file: " .. name, message)
    end
    for _, command in ipairs { "info", "hash" } do
      local pipe <close> = assert(io.popen(("'%s' %s '%s' 2>&1"):format(arg[-1] or "build/ltrain",
        command, path)))
      has(pipe:read "a", "not a plain file: " .. path)
    end
  end)
end)

describe("map_location of lt.load", function()
  local function devices(map)
    local t = assert(lt.load(path, { map_location = map }))
    return t.a.device, t.list[1].device, t.b.device
  end

  before_each(function()
    assert(lt.save(path, { a = lt.ones(2, { device = "fake:1" }), b = lt.zeros(2),
      list = { lt.ones(3, { device = "fake" }) } }))
  end)

  it("is the device of all tensors, which without it are on the CPU", function()
    assert.same({ "cpu", "cpu", "cpu" }, { devices() })
    assert.same({ "fake:2", "fake:2", "fake:2" }, { devices "fake:2" })
    assert.same({ 1, 1 }, lt.load(path, { map_location = "fake:2" }).a:tolist())
  end)

  it("may be a table of devices by those they were saved from, or a function", function()
    assert.same({ "fake:3", "cpu", "cpu" }, { devices { ["fake:1"] = "fake:3" } })
    assert.same({ "fake:1", "fake:0", "cpu" }, { devices(function(_, device) return device end) })
    local t = lt.load(path, { map_location = function(tensor, device)
      return device == "cpu" and tensor + 5 or nil
    end })
    assert.same({ 5, 5 }, t.b:tolist())
    assert.equal("cpu", t.a.device)
  end)

  it("places what another program wrote", function()
    foreign(4, true)
    local t, metadata = lt.load(path, { map_location = "fake:1", metadata = true })
    assert.equal("fake:1", t.x.device)
    assert.equal("table", type(metadata))
  end)

  it("is checked", function()
    assert.matches("save_spec.lua:%d+: device: unknown device 'cud'",
      error_of(function() devices "cud" end))
    assert.matches("load: map_location must be a string, an integer, a table or a function: got "
      .. "true", error_of(function() devices(true) end))
    assert.matches("load: map_location must be a device: got true for a tensor of fake:1",
      error_of(function() devices { ["fake:1"] = true } end))
    assert.matches("load: unknown option 'map'",
      error_of(function() lt.load(path, { map = "cpu" }) end))
  end)
end)
