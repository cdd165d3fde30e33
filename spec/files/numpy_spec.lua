-- spec/files/numpy_spec.lua: arrays of NumPy's own making, and what NumPy is to read.
--
-- spec/files/numpy_files.py has made the files.

local c = require "ltrain.c"
local lt = require "ltrain"
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local has = require "spec.has"
local zip = require "spec.files.zip"

local numpy <const> = lt.numpy
local HERE <const> = "spec/files/"

local folder
before_each(function() folder = child.folder() end)
after_each(function() child.remove(folder) end)

local function path(name) return folder .. "/" .. name end

-- The bytes of a .npy file of version 1.
local function npy(dict, data)
  return ("\x93NUMPY\1\0%s%s%s"):format(string.pack("<I2", #dict), dict, data or "")
end

local function reason(bytes)
  child.write(path "x.npy", bytes)
  local x, message = numpy.load(path "x.npy")
  assert.is_nil(x)
  return message
end

local DICT <const> = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
local TWO <const> = string.pack("<ff", 1, 2)

describe("numpy.load", function()
  it("reads arrays of every dtype, byte order and element order", function()
    local all, wanted = assert(numpy.load(HERE .. "arrays.npz")), lt.arange(24):reshape(2, 3, 4)
    local dtypes = {
      f4 = "f32", f8 = "f64", f2 = "f16", i8 = "i64", i4 = "i32", i2 = "i16", u2 = "u16",
      u1 = "u8", i1 = "i8", big = "f32", fortran = "i32",
    }
    for name, dtype in pairs(dtypes) do
      assert.equal(dtype, all[name].dtype)
      assert.same({ 2, 3, 4 }, all[name].shape)
      assert.is_true(wanted:equal(all[name]:to "i64"), name)
    end
    assert.equal("bool", all.b1.dtype)
    assert.equal(12, all.b1:to("i64"):sum():item())
    assert.same({}, all.scalar.shape)
    assert.equal(3.0, all.scalar:item())
    assert.same({ 0, 3 }, all.empty.shape)
    assert.same({ 0, 1, 2 }, all.one:tolist())
  end)

  it("reads stored members too", function()
    local all = assert(numpy.load(HERE .. "stored.npz"))
    assert.same({ 0, 1, 2, 3 }, all.arr_0:tolist())
    assert.equal(4.0, all.named:sum():item())
  end)

  it("refuses what is not an array of numbers, and says what it is", function()
    local function of(name) return select(2, numpy.load(HERE .. name .. ".npy")) end
    has(of "structured", "has a structured dtype, [('a', '<f4'), ('b', '<i8')]: save each field")
    has(of "objects", "has dtype '|O': it contains Python objects, which only Python can unpickle")
    has(of "complex", "has dtype '<c16': complex numbers: save the real and imaginary parts")
    has(of "text", "has dtype '<U2': it contains no numbers")
    has(of "none", "none.npy")
  end)

  it("refuses a damaged file", function()
    assert.same({ 1, 2 }, (function()
      child.write(path "x.npy", npy(DICT, TWO))
      return numpy.load(path "x.npy"):tolist()
    end)())
    has(reason "", "it does not begin as one")
    has(reason(npy(DICT, TWO):sub(1, 40)), "it ends within its header")
    has(reason(npy(DICT, TWO:sub(1, 7))), "its shape needs 8 bytes of data, and it has 7")
    has(reason(npy(DICT, TWO .. "x")), "its shape needs 8 bytes of data, and it has 9")
    has(reason(npy("{'descr': '<f4', 'shape': (2,)}", TWO)), "lacks dtype, order or shape")
    has(reason(npy(DICT:gsub("}", "} + 1"), TWO)), "something follows its header")
    has(reason(npy(DICT:gsub("2,", "2"), TWO)), "its shape is not a tuple")
    has(reason(npy(DICT:gsub("2,", "-2,"), TWO)), "its shape has no sizes")
    has(reason(npy(DICT:gsub("2,", "9223372036854775807, 4"), TWO)), "its shape overflows")
    has(reason(npy(DICT:gsub("<f4", "<f9"), TWO)), "has dtype '<f9': there is no such dtype here")
    has(reason(npy(DICT:gsub("False", "0"), TWO)), "fortran_order is neither True nor False")
    has(reason(npy(DICT:gsub("<f4", "|b1"), "\1\2")), "neither 0 nor 1")
    has(reason(npy(DICT:gsub("2,", "1, 1, 1, 1, 1, 1, 1, 1, 2"), TWO)), "more than 8 dimensions")
    has(reason("\x93NUMPY\9\0" .. ("x"):rep(20)), "its version is unknown")
  end)

  it("gives no other array where bytes of a .npz file have changed", function()
    local file <close> = assert(io.open(HERE .. "arrays.npz", "rb"))
    local bytes, whole = file:read "a", assert(numpy.load(HERE .. "arrays.npz"))
    local refused = 0
    for at = 1, #bytes, 37 do
      child.write(path "x.npz", bytes:sub(1, at - 1)
        .. string.char(bytes:byte(at) ~ 0x55) .. bytes:sub(at + 1))
      local all = numpy.load(path "x.npz")
      if not all then refused = refused + 1 end
      for name, x in pairs(all or {}) do
        if whole[name] then assert.equal(lt.hash(whole[name]), lt.hash(x)) end
      end
    end
    assert.is_true(refused > 50)
  end)
end)

describe("load", function()
  it("names numpy.load for files of NumPy", function()
    for _, name in ipairs { "structured.npy", "stored.npz" } do
      local x, message = lt.load(HERE .. name)
      assert.is_nil(x)
      has(message, "lt.numpy.load reads it")
    end
  end)
end)

describe("a compressed .npz file", function()
  it("is refused where it would become far larger than it is", function()
    local members = { { "x.npy", ("x"):rep(400) }, { "y.npy", ("y"):rep(150000) },
      { "z.npy", ("z"):rep(150000) } }
    local packed = zip(members, function(n, entry)
      entry.method, entry.size = 8, n == 1 and 4000 or 150000000
    end)
    child.write(path "x.npz", packed)
    local x, message = numpy.load(path "x.npz")
    assert.is_nil(x)
    has(message, ("x.npz has %d bytes and would become 300004000, over 100 times"):format(#packed))
  end)
end)

describe("damaged tables and arrays", function()
  it("are refused by a sentence, whatever the damage", function()
    local status, out, err = child.run { "spec/fuzz/tables.lua", "600", "3" }
    assert.equal(0, status, err)
    has(out, "600 runs from seed 3: read ")
  end)

  it("are so where their fields are wrong and their form is right", function()
    local status, out, err = child.run { "spec/fuzz/structures.lua", "100", "3" }
    assert.equal(0, status, err)
    has(out, "100 runs from seed 3: read ")
  end)
end)

describe("numpy.save", function()
  it("writes what numpy.load reads, bit for bit", function()
    for _, dtype in ipairs(lt.dtypes()) do
      if dtype.name ~= "bf16" then
        for _, x in ipairs { lt.randint(0, 2, { 3, 5 }), lt.tensor(1), lt.zeros(0, 2),
          lt.randint(0, 2, { 300, 400 }):t() } do
          x = x:to(dtype.name)
          assert(numpy.save(path "x.npy", x))
          local y = assert(numpy.load(path "x.npy"))
          assert.equal(lt.hash(x:contiguous()), lt.hash(y:contiguous()))
        end
      end
    end
  end)

  it("writes the header that NumPy writes", function()
    assert(numpy.save(path "x.npy", lt.zeros(2, 3)))
    local file <close> = assert(io.open(path "x.npy", "rb"))
    assert.equal("\x93NUMPY\1\0\118\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
      .. (" "):rep(58) .. "\n" .. ("\0"):rep(24), file:read "a")
  end)

  it("refuses bf16, and what is not a tensor", function()
    has(error_of(numpy.save, path "x.npy", lt.ones(2):to "bf16"), "NumPy has no bf16")
    has(error_of(numpy.save, path "x.npy", 3), "numpy.save: needs a tensor, got 3")
    assert.is_nil((numpy.save(path "none/x.npy", lt.ones(1))))
  end)
end)

describe("numpy.savez", function()
  it("writes arrays by name, as they are or compressed", function()
    local arrays = { x = lt.rand(100, 100), ["long name"] = lt.arange(3), none = lt.zeros(0) }
    for _, save in ipairs { numpy.savez, numpy.savez_compressed } do
      assert(save(path "x.npz", arrays))
      assert.equal(lt.hash(arrays), lt.hash(assert(numpy.load(path "x.npz"))))
    end
  end)

  it("compresses", function()
    local function size_of(save)
      assert(save(path "x.npz", { x = lt.zeros(1000, 100) }))
      local file <close> = assert(io.open(path "x.npz", "rb"))
      return file:seek "end"
    end
    assert.is_true(size_of(numpy.savez) > 400000)
    assert.is_true(size_of(numpy.savez_compressed) < 4000)
  end)

  it("refuses what is not an array, or no name", function()
    local npz_save = c.io.npz_save
    has(error_of(npz_save, path "x.npz", ("A"):rep(100), { lt.ones(1) }),
      "expected a table, got string")
    has(error_of(npz_save, path "x.npz", { "a" }, "b"), "expected a table, got string")
    has(error_of(npz_save, path "x.npz", { {} }, { lt.ones(1) }), "a list of names")
    has(error_of(numpy.savez, path "x.npz", { x = 1 }), "numpy.savez: x must be a tensor, got 1")
    has(error_of(numpy.savez, path "x.npz", { ["a/b"] = lt.ones(1) }),
      "this is not a valid array name")
    has(error_of(numpy.savez, path "x.npz", lt.ones(1)), "needs a table of tensors by name")
  end)
end)

describe("numpy.memmap", function()
  it("is the numbers of a file without a header", function()
    child.write(path "tokens.bin", string.pack("<I2I2I2I2I2I2", 1, 2, 3, 4, 5, 50256))
    local function of(options) return assert(numpy.memmap(path "tokens.bin", options)) end
    assert.same({ 1, 2, 3, 4, 5, 50256 }, of { dtype = "u16" }:tolist())
    assert.same({ 3, 4, 5, 50256 }, of { dtype = "uint16", offset = 4 }:tolist())
    assert.same({ { 2, 3 }, { 4, 5 } },
      of { dtype = "u16", offset = 2, shape = { 2, 2 } }:tolist())
    assert.equal(12, #of())
  end)

  it("is in the file, which stays as it is when it is written", function()
    assert(numpy.save(path "x.npy", lt.arange(100000, { dtype = "i32" })))
    local before = c.runtime.memory().live_bytes
    local x = assert(numpy.memmap(path "x.npy", { dtype = "i32", offset = 128 }))
    assert.equal(99999, x[-1]:item())
    assert.is_true(c.runtime.memory().live_bytes - before < 100000)
    x:zero_()
    assert.equal(99999, numpy.load(path "x.npy")[-1]:item())
  end)

  it("refuses a shape that the file is too short for, and half a number", function()
    child.write(path "x.bin", "12345")
    local function of(options) return select(2, numpy.memmap(path "x.bin", options)) end
    has(of { dtype = "u16" }, "5 bytes are not a whole number of u16")
    has(of { dtype = "u16", shape = { 3 } }, "has 5 bytes: too few for the shape")
    has(of { shape = { 3 }, offset = 3 }, "too few for the shape behind the offset")
    has(of { offset = 9 }, "too few for the shape behind the offset")
  end)
end)
