-- spec/files/torch_save_spec.lua: lt.save under names of PyTorch's. Files of these values were read
-- by torch.load(path, weights_only=True) of PyTorch 2.15 with the same values, dtypes, strides and
-- shared memory.
local lt = require "ltrain"
local error_of = require "spec.error_of"

local path

local function bytes_of(file)
  local f <close> = assert(io.open(file, "rb"))
  return f:read "a"
end

local function saved(value)
  assert(lt.save(path, value))
  return assert(lt.load(path))
end

before_each(function() path = os.tmpname() .. ".pth" end)
after_each(function()
  os.remove(path)
  os.remove((path:gsub("%.pth$", "")))
end)

describe("lt.save of a file .pt or .pth", function()
  it("writes a zip file whose pickle makes tensors as torch.save's does", function()
    assert(lt.save(path, { w = lt.tensor { { 1.5, 2.5 } } }))
    local bytes = bytes_of(path)
    assert.equal("PK\3\4", bytes:sub(1, 4))
    assert.matches("archive/data.pkl", bytes, 1, true)
    assert.matches("\x80\2}(X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
      .. "ctorch\nFloatStorage\nX\1\0\0\0" .. "0X\3\0\0\0cpuJ\2\0\0\0tQJ\0\0\0\0"
      .. "(J\1\0\0\0J\2\0\0\0t(J\2\0\0\0J\1\0\0\0t\x89ccollections\nOrderedDict\n)RtRu.",
      bytes, 1, true)
    local at = bytes:find(("<ff"):pack(1.5, 2.5), 1, true)
    assert.equal(1, at % 64) -- where a file that is mapped has it aligned
  end)

  it("gives nested tables, numbers, strings and booleans back", function()
    local value = { list = { 1, 2.0, "é", "\0\xff", true, false }, pairs = { [3] = 1, x = "y" },
      big = math.mininteger, third = 1 / 3, inf = -math.huge, empty = {}, ["$tensor"] = "a" }
    local back = saved(value)
    assert.same(value, back)
    assert.equal("integer", math.type(back.list[1]))
    assert.equal("float", math.type(back.list[2]))
    assert.equal("text", saved "text")
    assert.same({ 0, 1, 2 }, saved(lt.arange(3)):tolist())
  end)

  it("keeps each dtype", function()
    local value = {}
    for _, row in ipairs(lt.dtypes()) do
      value[row.name] = lt.tensor({ 0, 1 }, { dtype = row.name })
    end
    for name, x in pairs(saved(value)) do
      assert.same({ name, { 0, 1 } }, { x.dtype, x:to "f64":tolist() })
    end
  end)

  it("keeps strides and shared memory, and writes of a storage what is shown", function()
    local base = lt.arange(24):to "f32":reshape(2, 3, 4)
    local back = saved { base = base, turned = base:transpose(1, 3), row = base[2][3],
      wide = lt.ones(1):expand(3), none = lt.zeros(0, 3) }
    assert.same({ { 1, 4, 12 }, { 0 }, { 0, 3 } },
      { back.turned:stride(), back.wide:stride(), back.none.shape })
    back.base:fill_(9)
    assert.same({ 9, 9, 9, 9 }, back.row:tolist())
    assert(lt.save(path, lt.zeros(100000):narrow(1, 2, 3)))
    assert.is_true(#bytes_of(path) < 4000)
  end)

  it("writes tensors of devices, which are read on the CPU", function()
    local back = saved { a = lt.full({ 3 }, 2, { device = "fake:1" }):narrow(1, 2, 2) }
    assert.same({ { 2, 2 }, "cpu" }, { back.a:tolist(), back.a.device })
  end)

  it("is read by name, whatever else is between the dots", function()
    for _, name in ipairs { "a.pt", "a.pth", "a.pth.tar" } do
      local file = path .. name
      assert(lt.save(file, { 1 }))
      assert.equal("PK", bytes_of(file):sub(1, 2))
      os.remove(file)
    end
    for _, name in ipairs { "a.safetensors", "pt", "a.ckpt" } do
      local file = path .. name
      assert(lt.save(file, { 1 }))
      assert.not_equal("PK", bytes_of(file):sub(1, 2))
      os.remove(file)
    end
  end)

  it("refuses what cannot be saved by its place, as for other files", function()
    assert.matches("torch_save_spec.lua:%d+: save: a.f cannot be saved: it is a function",
      error_of(function() lt.save(path, { a = { f = print } }) end))
    local done, why = lt.save("/nonexistent/a.pt", { 1 })
    assert.is_nil(done)
    assert.matches("^save: .*/nonexistent", why)
  end)
end)
