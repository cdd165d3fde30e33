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
    local found = c.io.read_slot(fds[1], true)
    for name, value in next, header do assert.equal(value, found[name]) end
    local tensors, metadata = c.io.load_safetensors("/proc/self/fd/" .. fds[1], nil, 4096,
      found.bytes)
    assert.equal("hello", metadata.text)
    assert.equal(99999.0, tensors.x[100000]:item())
    save(fds[1], { y = lt.zeros(100000) }, header) -- what was read stays as it is
    assert.equal(99999.0, tensors.x[100000]:item())
  end)

  it("is copied with its header", function()
    save(fds[1], { x = lt.ones(5) }, { serial = 3, parts = 1 })
    local header = c.io.read_slot(fds[1], true)
    assert.is_true(c.io.put_slot(fds[2], header, c.io.slot_bytes(fds[1], header)))
    assert.same(header, c.io.read_slot(fds[2], true))
  end)

  it("is not whole when a byte of it has changed", function()
    save(fds[1], { x = lt.ones(5000) }, { parts = 1 })
    local file <close> = assert(io.open("/proc/self/fd/" .. fds[1], "r+b"))
    file:seek("set", 4096 + 1000)
    file:write "x"
    file:flush()
    assert.is_table(c.io.read_slot(fds[1]))
    assert.is_nil(c.io.read_slot(fds[1], true))
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
