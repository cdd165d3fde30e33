-- spec/elastic/snapshot_memory_spec.lua: the memory files of a host's ranks, and slots as the
-- library's own Lua sees them.
local c = require "ltrain.c"
local lt = require "ltrain"
local snapshot_memory = require "ltrain.elastic.snapshot_memory"

local function save(fd, tensors, header)
  local saving <const> = assert(c.io.save_slot(fd, tensors, { text = "{}" }, {}, header))
  assert.is_true(saving:wait())
  assert.is_true(saving:done())
end

-- The header of a slot whose bytes are right; nil: of none.
local function whole(fd)
  local header = c.io.read_slot(fd)
  return header and c.io.hash_slot(fd, header) == header.hash and header or nil
end

describe("the memory files of a host", function()
  it("are four for each rank, whose descriptors the ranks inherit", function()
    local memory = assert(snapshot_memory.new(3))
    local variables, fds = memory:environment()
    assert.equal(12, #fds)
    assert.same({ "LTRAIN_SNAPSHOT=" .. table.concat(fds, ",") }, variables)
    for _, fd in ipairs(fds) do
      local file <close> = assert(io.open("/proc/self/fd/" .. fd, "rb"))
      assert.equal("", file:read "a")
    end
  end)
end)

describe("the progress of a host", function()
  it("is that of the latest step of the latest fit", function()
    local memory = assert(snapshot_memory.new(1))
    local _, fds = memory:environment()
    local before = memory:progress()
    local headers = { { fit = 1, step = 7 }, { fit = 1, step = 9 }, { fit = 2, step = 3 } }
    for k, header in ipairs(headers) do
      save(fds[k], { x = lt.ones(5) }, header)
      assert.is_true(memory:progress() > before)
      before = memory:progress()
    end
    save(fds[4], { x = lt.ones(5) }, { fit = 1, step = 1000 })
    assert.equal(before, memory:progress())
  end)
end)

describe("a slot", function()
  local _, fds = snapshot_memory.new(1):environment()

  it("has no snapshot at first", function() assert.is_nil(c.io.read_slot(fds[1])) end)

  it("gives back what was saved in it, not what the tensors are later", function()
    local x = lt.arange(100000):to "f32"
    local header = { fit = 2, round = 1, serial = 9, step = 40, part = 0, parts = 1 }
    local saving <const> = assert(c.io.save_slot(fds[1], { x = x }, { text = "hello" }, {}, header))
    x:zero_()
    assert.is_true(saving:wait())
    local found = whole(fds[1])
    for name, value in next, header do assert.equal(value, found[name]) end
    local tensors, metadata = c.io.load_safetensors("/proc/self/fd/" .. fds[1], nil, 4096,
      found.bytes)
    assert.equal("hello", metadata.text)
    assert.equal(99999.0, tensors.x[100000]:item())
    save(fds[1], { y = lt.zeros(100000) }, header) -- what was read stays as it is
    assert.equal(99999.0, tensors.x[100000]:item())
  end)

  it("is hashed by several readers, each of a share", function()
    save(fds[1], { x = lt.arange(100000):to "f32" }, { parts = 1 })
    local header, sum = c.io.read_slot(fds[1]), 0
    for share = 0, 2 do sum = sum + c.io.hash_slot(fds[1], header, share, 3) end
    assert.equal(header.hash, sum)
  end)

  it("is read into a tensor that is there", function()
    save(fds[1], { x = lt.arange(10):to "f32" }, { parts = 1 })
    local header = c.io.read_slot(fds[1])
    local file = assert(c.io.open_safetensors("/proc/self/fd/" .. fds[1], 4096, header.bytes))
    local index, y = file:tensors().x.index, lt.zeros { 2, 4 }
    assert.equal(y, file:read(index, 1, y))
    assert.same({ { 1.0, 2.0, 3.0, 4.0 }, { 5.0, 6.0, 7.0, 8.0 } }, y:tolist())
    for text, other in next, { ["contiguous"] = lt.zeros({ 2, 3 }):t(),
      ["of the dtype"] = lt.zeros({ 2 }, { dtype = "f64" }) } do
      assert.error_matches(function() file:read(index, 0, other) end, text)
    end
    assert.error_matches(function() file:read(index, 4, y) end, "has 10 elements, not 8 from 4 on")
    file:close()
  end)

  it("is copied with its header", function()
    save(fds[1], { x = lt.ones(5) }, { serial = 3, parts = 1 })
    local header = whole(fds[1])
    assert.is_true(c.io.put_slot(fds[2], header, c.io.slot_bytes(fds[1], header)))
    assert.same(header, whole(fds[2]))
  end)

  it("is not whole when a byte of it has changed", function()
    save(fds[1], { x = lt.ones(5000) }, { parts = 1 })
    local file <close> = assert(io.open("/proc/self/fd/" .. fds[1], "r+b"))
    file:seek("set", 4096 + 1000)
    file:write "x"
    file:flush()
    assert.is_table(c.io.read_slot(fds[1]))
    assert.is_nil(whole(fds[1]))
  end)

  it("that cannot be written is reported", function()
    local full <close> = assert(io.open("/dev/full", "r+b")) -- luacheck: ignore
    local fd
    for n = 0, 200 do
      local link <close> = io.popen(("readlink /proc/%d/fd/%d"):format(c.runtime.pid(), n))
      if link:read "l" == "/dev/full" then fd = n break end
    end
    local saving, message = c.io.save_slot(fd, { x = lt.ones(5) }, {}, {}, {})
    assert.is_nil(saving)
    assert.matches("^snapshot: cannot write %d+ bytes: No space left", message)
  end)
end)
